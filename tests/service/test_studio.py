import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.errors import (
    ConsentRequiredError,
    InUseError,
    JobNotFinishedError,
    JobNotFoundError,
    KeyReusedError,
    NotFoundError,
    QueueFullError,
    UnknownProcessorError,
    UnsupportedTypeError,
    UsageError,
)
from app.jobs.job import JobId, JobRequest, JobState
from app.pipeline.progress import RenderResult
from app.pipeline.spec import FaceMap, OutputChoices, Step
from tests.jobs.fakes import MODEL, STILL, VIDEO, Volume, open_volume

ROOT = Path(__file__).resolve().parents[2]


def finish(volume: Volume) -> None:
    """Play the engine: end the oldest job as done."""
    claim = volume.store.claim()
    assert claim is not None
    output = claim.job.spec.output

    def publish() -> None:
        output.parent.mkdir()
        output.write_bytes(b"result")

    result = RenderResult(output=output, frames=1, frames_swapped=1, faces_swapped=1)
    volume.store.finish(claim, result, publish=publish)


def test_a_request_becomes_a_whole_spec(volume: Volume) -> None:
    request = volume.request(face_map={"person": 1}, encoding={"quality": 90})
    job = volume.studio.submit(request)
    assert job.request == request
    assert job.spec.sources == (volume.studio.media_path(request.sources[0]),)
    assert job.spec.target == volume.studio.media_path(request.target)
    assert job.spec.output == volume.folders.results / job.id / "result.mp4"
    assert job.spec.consent == "self"
    assert job.spec.face_map == FaceMap.only(2)
    assert job.spec.encoding == OutputChoices(quality=90)
    assert job.download_name == "party_swapped.mp4"


def test_photos_of_a_face_map_are_uploads_that_the_job_needs(volume: Volume) -> None:
    photo, reference = volume.upload(), volume.upload()
    choice = {"reference": reference, "action": {"photos": [photo]}}
    job = volume.submit(face_map={"choices": [choice], "others": "leave"}, sources=[])
    (chosen,) = job.spec.face_map.choices
    assert chosen.reference == volume.studio.media_path(reference)
    assert job.spec.face_map.photos == tuple(map(volume.studio.media_path, (reference, photo)))
    for upload in (photo, reference):
        with pytest.raises(InUseError):
            volume.studio.delete_media(upload)


@pytest.mark.parametrize(
    "action", [{"photos": ["0123"]}, {"saved": "0" * 32}, {"saved": "../media"}], ids=str
)
def test_a_face_map_of_what_is_not_there_is_refused(volume: Volume, action: object) -> None:
    with pytest.raises(NotFoundError):
        volume.submit(face_map={"choices": [{"person": 1, "action": action}]})
    assert volume.studio.jobs() == ()


def test_the_least_request_takes_every_default(volume: Volume) -> None:
    step = volume.submit().spec.steps[0]
    assert step == Step(processor="face_swapper", options={"blend": 0.8, "model": "mesh"})


@pytest.mark.parametrize(
    ("steps", "error", "told"),
    [
        pytest.param(
            [{"processor": "nobody"}], UnknownProcessorError, "face_swapper", id="unknown"
        ),
        pytest.param(
            [{"processor": "face_swapper", "options": {"blend": 2}}],
            UsageError,
            r"face_swapper\.blend: .*less than or equal to 1",
            id="out of bounds",
        ),
        pytest.param(
            [{"processor": "face_swapper", "options": {"blur": 1}}],
            UsageError,
            "blur: .*not permitted",
            id="unknown option",
        ),
    ],
)
def test_options_are_checked_by_the_processors_own_class(
    volume: Volume, steps: object, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        volume.submit(steps=steps)
    assert volume.studio.jobs() == ()


def test_a_job_without_consent_is_refused(volume: Volume) -> None:
    with pytest.raises(ConsentRequiredError):
        volume.submit(consent=None)


@pytest.mark.parametrize("field", ["sources", "target"])
def test_inputs_have_to_be_there(volume: Volume, field: str) -> None:
    with pytest.raises(NotFoundError):
        volume.submit(**{field: ["gone"] if field == "sources" else "gone"})


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"sources": [], "target": "t"}, id="no source"),
        pytest.param({"sources": ["s"] * 65, "target": "t"}, id="too many sources"),
        pytest.param({"sources": ["s"], "target": "t", "steps": []}, id="no step"),
        pytest.param({"sources": ["s"], "target": "t", "labels": False}, id="unknown field"),
    ],
)
def test_requests_that_make_no_sense_are_no_requests(body: object) -> None:
    with pytest.raises(ValidationError):
        JobRequest.model_validate(body)


def test_one_upload_may_be_source_and_target(volume: Volume) -> None:
    media_id = volume.upload()
    job = volume.submit(sources=[media_id, media_id], target=media_id)
    assert job.request.inputs == (media_id,)
    assert job.download_name == "me_swapped.png"


def test_a_key_makes_handing_in_repeatable(volume: Volume) -> None:
    request = volume.request()
    assert volume.studio.submitted_before(request, "key") is None
    job = volume.studio.submit(request, idempotency_key="key")
    assert volume.studio.submit(request, idempotency_key="key") == job
    assert volume.studio.submitted_before(request, "key") == job
    with pytest.raises(KeyReusedError):
        volume.studio.submit(volume.request(), idempotency_key="key")


def test_a_repeated_key_still_answers_when_an_input_is_gone(volume: Volume) -> None:
    request = volume.request()
    job = volume.studio.submit(request, idempotency_key="key")
    volume.studio.cancel(job.id)
    volume.studio.delete_media(request.target)
    assert volume.studio.submit(request, idempotency_key="key").id == job.id


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_keys_have_a_length(volume: Volume, key: str) -> None:
    with pytest.raises(UsageError):
        volume.studio.submit(volume.request(), idempotency_key=key)


def test_the_operator_bounds_the_queue(tmp_path: Path) -> None:
    with open_volume(tmp_path / "data", max_queued=1) as volume:
        volume.submit()
        with pytest.raises(QueueFullError):
            volume.submit()


def test_only_a_job_that_is_done_has_a_result(volume: Volume) -> None:
    job, canceled = volume.submit(), volume.submit()
    volume.studio.cancel(canceled.id)
    for each in (job, canceled):
        with pytest.raises(JobNotFinishedError):
            volume.studio.result(each.id)
    finish(volume)
    result = volume.studio.result(job.id)
    assert (result.path.read_bytes(), result.name) == (b"result", "party_swapped.mp4")
    assert result.media_type == "video/mp4"


def test_a_deleted_job_takes_its_result_along_and_leaves_the_uploads(volume: Volume) -> None:
    job = volume.submit()
    with pytest.raises(InUseError):
        volume.studio.delete_job(job.id)
    finish(volume)
    path = volume.studio.result(job.id).path
    volume.studio.delete_job(job.id)
    assert not path.parent.exists()
    with pytest.raises(JobNotFoundError):
        volume.studio.result(job.id)
    assert volume.studio.media_path(job.request.target).read_bytes() == VIDEO


def test_an_upload_is_handed_out_under_its_own_name(volume: Volume) -> None:
    file = volume.studio.media_file(volume.upload(STILL, "me.JPG"))
    assert (file.path.read_bytes(), file.name, file.media_type) == (STILL, "me.JPG", "image/png")


def test_watching_a_finished_job_gives_it_once(volume: Volume) -> None:
    job = volume.submit()
    volume.studio.cancel(job.id)
    assert [seen.state for seen in volume.studio.watch(job.id)] == [JobState.CANCELED]


def test_watching_an_unknown_job_fails_at_once(volume: Volume) -> None:
    with pytest.raises(JobNotFoundError):
        next(volume.studio.watch(JobId("nobody")))


def test_a_watcher_may_walk_away_and_come_back(volume: Volume) -> None:
    job = volume.submit()
    first = next(volume.studio.watch(job.id))
    assert first == job
    ender = threading.Thread(target=lambda: (time.sleep(0.1), finish(volume)))
    ender.start()
    *_, last = volume.studio.watch(job.id, every_s=0.01)
    ender.join()
    assert last.state is JobState.DONE


def test_processors_come_with_the_schema_of_their_options(volume: Volume) -> None:
    (info,) = volume.studio.processors()
    assert (info.id, info.title, info.order) == ("face_swapper", "Swap faces", 10)
    assert info.options_schema["properties"]["blend"]["maximum"] == 1


def test_a_model_is_installed_when_its_whole_file_is_there(volume: Volume) -> None:
    folder = volume.folders.root / "models"
    folder.mkdir()
    assert not volume.studio.models()[0].is_installed
    (folder / MODEL.file).write_bytes(b"123")
    assert not volume.studio.models()[0].is_installed
    (folder / MODEL.file).write_bytes(b"1234")
    assert volume.studio.models()[0].is_installed


def test_readiness_names_what_is_missing(volume: Volume) -> None:
    assert volume.studio.readiness().problems == ("engine.not_running", "model.missing")
    (volume.folders.root / "models").mkdir()
    (volume.folders.root / "models" / MODEL.file).write_bytes(b"1234")
    volume.engines.seen("engine-0", state="idle", pid=1)
    assert volume.studio.readiness().is_ready
    volume.engines.seen("engine-0", state="idle", pid=1, problem="device.unavailable")
    assert volume.studio.readiness().problems == ("device.unavailable",)
    volume.time.seconds += 100
    assert volume.studio.readiness().problems == ("engine.not_running",)


def test_one_engine_that_works_is_enough(volume: Volume) -> None:
    (volume.folders.root / "models").mkdir()
    (volume.folders.root / "models" / MODEL.file).write_bytes(b"1234")
    volume.engines.supervised("engine-1", state="stopped", problem="device.unavailable")
    assert volume.studio.readiness().problems == ("device.unavailable", "engine.not_running")
    volume.engines.seen("engine-0", state="busy", pid=1)
    assert volume.studio.readiness().is_ready


def test_the_facade_loads_without_any_heavy_library() -> None:
    code = (
        "import sys; import app.service, app.jobs.store, app.api.app\n"
        "heavy = {'onnxruntime', 'onnx', 'gradio', 'av'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_video_is_no_face_to_put_on(volume: Volume) -> None:
    video = volume.upload(VIDEO, "party.mp4")
    with pytest.raises(UnsupportedTypeError, match="photos"):
        volume.submit(sources=(video,))
    assert volume.studio.jobs() == ()
