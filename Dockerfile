# FaceDock in one container. The default base carries CUDA 13 and cuDNN 9; the same image runs on the CPU where no
# GPU is at hand. For a small CPU-only image: docker build --build-arg BASE_IMAGE=python:3.12-slim .
ARG BASE_IMAGE=nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04
FROM ${BASE_IMAGE}

# The CUDA base has no Python; the slim one has its own.
RUN command -v python3 >/dev/null && python3 -m venv --help >/dev/null 2>&1 \
    || (apt-get update && apt-get install -y --no-install-recommends python3 python3-venv \
        && rm -rf /var/lib/apt/lists/*)

WORKDIR /opt/facedock
COPY requirements.txt ./
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements.txt
COPY app ./app
COPY models ./models
COPY LICENSE NOTICE ./

ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    FACEDOCK_DATA_DIR=/data \
    FACEDOCK_HOST=0.0.0.0 \
    FACEDOCK_PORT=8080 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility,video

RUN mkdir /data && chown 1000:1000 /data
VOLUME /data
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=180s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['FACEDOCK_PORT'] + '/healthz', timeout=4)"]

# The embedded models come once, into the volume.
CMD ["sh", "-c", "python -m app models pull embedded && exec python -m app serve"]
