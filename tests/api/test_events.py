import asyncio
import json
import threading
import time
from typing import Any

from starlette.testclient import TestClient

from app.api.events import job_events
from app.api.options import ApiOptions
from app.jobs.job import JobState
from app.pipeline.progress import Progress
from tests.api.test_routes import code_of, finish, submit
from tests.jobs.fakes import Volume


def events_in(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line[0] != ":")
        if lines:
            found.append((lines["event"], lines["id"], json.loads(lines["data"])))
    return found


def test_a_finished_job_is_told_once(client: TestClient, volume: Volume) -> None:
    job = submit(client)
    finish(volume)
    answer = client.get(job["events_url"])
    assert answer.headers["content-type"].startswith("text/event-stream")
    ((kind, _, data),) = events_in(answer.text)
    assert (kind, data) == ("end", client.get(job["url"]).json())


def test_a_running_job_is_followed_to_its_end(client: TestClient, volume: Volume) -> None:
    job = submit(client)

    def engine() -> None:
        time.sleep(0.2)
        claim = volume.store.claim()
        assert claim is not None
        for frames in (1, 2):
            progress = Progress(frames_done=frames, frames_total=2, fps=1.0, elapsed_s=1.0)
            volume.store.renew(claim, progress)
            time.sleep(0.2)
        volume.store.stop(claim, JobState.CANCELED)

    thread = threading.Thread(target=engine)
    thread.start()
    events = events_in(client.get(job["events_url"]).text)
    thread.join()
    states = [data["state"] for _, _, data in events]
    assert (states[0], states[-1]) == ("queued", "canceled")
    assert [kind for kind, _, _ in events] == ["job"] * (len(events) - 1) + ["end"]
    frames = [data["progress"]["frames_done"] for _, _, data in events if data["progress"]]
    assert [f for f in frames if f in (1, 2)] == sorted(frames)
    assert {1, 2} <= set(frames)


def test_whoever_connects_again_after_the_end_is_told_to_stay_away(
    client: TestClient, volume: Volume
) -> None:
    job = submit(client)
    volume.studio.cancel(job["id"])
    ((_, last, _),) = events_in(client.get(job["events_url"]).text)
    again = client.get(job["events_url"], headers={"Last-Event-ID": last})
    assert (again.status_code, again.content) == (204, b"")
    behind = client.get(job["events_url"], headers={"Last-Event-ID": "0"})
    assert events_in(behind.text)[0][0] == "end"


def test_an_unknown_job_has_no_events(client: TestClient) -> None:
    answer = client.get("/api/v1/jobs/nobody/events")
    assert (answer.status_code, code_of(answer)) == (404, "job.not_found")


def test_the_stream_ends_when_the_job_is_deleted(volume: Volume) -> None:
    job = volume.submit()

    async def follow() -> list[str]:
        events = job_events(volume.studio, job, ApiOptions(poll_s=0.01))
        first = await anext(events)
        volume.studio.cancel(job.id)
        volume.studio.delete_job(job.id)
        return [first, *[event async for event in events]]

    assert len(asyncio.run(follow())) == 1


def test_the_stream_ends_when_the_server_stops(volume: Volume) -> None:
    job = volume.submit()
    options = ApiOptions(poll_s=0.01, is_stopping=lambda: True)

    async def follow() -> list[str]:
        return [event async for event in job_events(volume.studio, job, options)]

    assert len(asyncio.run(follow())) == 1
