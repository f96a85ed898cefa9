"""Every way in which FaceDock says no.

    AppError                             internal.unexpected
    |-- UsageError                       request.bad_option
    |   |-- UnknownModelError            request.unknown_model
    |   |-- UnknownProcessorError        request.unknown_processor
    |   |-- BadNameError                 request.bad_name
    |   |-- RequestTooLargeError         request.too_large
    |   |-- NotFoundError                request.not_found
    |   |-- InUseError                   request.in_use
    |   |-- KeyReusedError               request.key_reused
    |   |-- BadMultipartError            request.bad_multipart
    |   |-- BadHostError                 request.bad_host
    |   |-- CrossSiteError               auth.cross_site
    |   `-- ConsentRequiredError         consent.required
    |-- MediaError                       media.unreadable
    |   |-- MediaNotFoundError           media.not_found
    |   |-- EmptyMediaError              media.empty
    |   |-- UnsupportedTypeError         media.unsupported_type
    |   |-- UnsupportedCodecError        media.unsupported_codec
    |   |-- TruncatedMediaError          media.truncated
    |   |-- DamagedMediaError            media.damaged
    |   |-- MediaTooLargeError           media.too_large
    |   |-- BadDimensionsError           media.bad_dimensions
    |   |-- SizeChangedError             media.size_changed
    |   `-- NoVideoError                 media.no_video
    |-- FaceError                        face.unusable
    |   |-- NoFaceInSourceError          face.none_in_source
    |   |-- AmbiguousSourceError         face.ambiguous
    |   |-- SourcesDisagreeError         face.sources_disagree
    |   |-- NoFaceInTargetError          face.none_in_target
    |   |-- NoSuchPersonError            face.no_such_person
    |   `-- DegenerateKpsError           face.degenerate_kps
    |-- PolicyError                      policy.refused
    |   |-- IntimateContentError         policy.intimate_content
    |   `-- GateUnavailableError         policy.gate_unavailable
    |-- ModelError                       model.failed
    |   |-- MissingModelError            model.missing
    |   |-- ModelIntegrityError          model.integrity
    |   |-- ConversionError              model.conversion_failed
    |   `-- DownloadError                model.download_failed
    |-- DeviceError                      device.failed
    |   |-- DeviceUnavailableError       device.unavailable
    |   `-- OutOfDeviceMemoryError       device.out_of_memory
    |-- OutputError                      output.failed
    |   |-- UnwritableOutputError        output.unwritable
    |   |-- UnsupportedOutputError       output.unsupported_type
    |   |-- StorageFullError             storage.full
    |   `-- LabelError                   label.not_verified
    |-- JobError                         job.failed
    |   |-- JobNotFoundError             job.not_found
    |   |-- JobNotFinishedError          job.not_finished
    |   |-- QueueFullError               queue.full
    |   |-- LeaseLostError               job.lease_lost
    |   |-- EngineNotRunningError        engine.not_running
    |   |-- EngineBusyError              engine.busy
    |   `-- WorkerLostError              job.worker_lost
    `-- Cancelled                        job.canceled

A class carries its code, of which `error_table` makes status and text; a message holds no secret and no person's name.
"""


class AppError(Exception):
    """Anything that FaceDock refuses or fails at; `code` is stable, the message is for people."""

    code = "internal.unexpected"

    def __init__(self, message: str = "") -> None:
        self.message = message


class UsageError(AppError):
    """What was asked for makes no sense."""

    code = "request.bad_option"


class UnknownModelError(UsageError):
    """No manifest entry has this id."""

    code = "request.unknown_model"


class UnknownProcessorError(UsageError):
    """No processor has this id."""

    code = "request.unknown_processor"


class BadNameError(UsageError):
    """A file name that no file system should see."""

    code = "request.bad_name"


class RequestTooLargeError(UsageError):
    """The body is longer than the operator allows."""

    code = "request.too_large"


class NotFoundError(UsageError):
    """Nothing has this id, or it belongs to somebody else."""

    code = "request.not_found"


class InUseError(UsageError):
    """A job that is not finished still needs it."""

    code = "request.in_use"


class KeyReusedError(UsageError):
    """The idempotency key belongs to an earlier, different request."""

    code = "request.key_reused"


class BadMultipartError(UsageError):
    """A form body that is broken, or holds more than one file."""

    code = "request.bad_multipart"


class BadHostError(UsageError):
    """The request names a host that is not ours."""

    code = "request.bad_host"


class CrossSiteError(UsageError):
    """Another site's page tries to change something here."""

    code = "auth.cross_site"


class ConsentRequiredError(UsageError):
    """A job came without saying on what ground the faces may be used."""

    code = "consent.required"


class MediaError(AppError):
    """A picture or video that cannot be used."""

    code = "media.unreadable"


class MediaNotFoundError(MediaError):
    """There is no such file."""

    code = "media.not_found"


class EmptyMediaError(MediaError):
    """The file has no bytes."""

    code = "media.empty"


class UnsupportedTypeError(MediaError):
    """The bytes are no picture or video of a kind we read."""

    code = "media.unsupported_type"


class UnsupportedCodecError(MediaError):
    """The container is fine, what is in it is not on the list."""

    code = "media.unsupported_codec"


class TruncatedMediaError(MediaError):
    """The file ends before its content does."""

    code = "media.truncated"


class DamagedMediaError(MediaError):
    """Too much of the file cannot be decoded."""

    code = "media.damaged"


class MediaTooLargeError(MediaError):
    """More pixels, frames or seconds than the budget; decided from the header."""

    code = "media.too_large"


class BadDimensionsError(MediaError):
    """A width, height or rate that makes no picture."""

    code = "media.bad_dimensions"


class SizeChangedError(MediaError):
    """The picture changes its size in mid-stream."""

    code = "media.size_changed"


class NoVideoError(MediaError):
    """The file has no video stream."""

    code = "media.no_video"


class FaceError(AppError):
    """A face that cannot be used."""

    code = "face.unusable"


class NoFaceInSourceError(FaceError):
    """No face to put on was found in a source picture."""

    code = "face.none_in_source"


class AmbiguousSourceError(FaceError):
    """A source picture shows several faces of like size."""

    code = "face.ambiguous"


class SourcesDisagreeError(FaceError):
    """The photos of one source face show different people, and no one of them most often."""

    code = "face.sources_disagree"


class NoFaceInTargetError(FaceError):
    """The picture to change shows no face."""

    code = "face.none_in_target"


class NoSuchPersonError(FaceError):
    """The target does not show the chosen person: by number, place in an order, or likeness."""

    code = "face.no_such_person"


class DegenerateKpsError(FaceError):
    """The key points lie on one spot, so no alignment exists."""

    code = "face.degenerate_kps"


class PolicyError(AppError):
    """Refused on principle."""

    code = "policy.refused"


class IntimateContentError(PolicyError):
    """The gate saw intimate content in a source, the target or the result."""

    code = "policy.intimate_content"


class GateUnavailableError(PolicyError):
    """The gate cannot look, so nothing passes."""

    code = "policy.gate_unavailable"


class ModelError(AppError):
    """A network that cannot be used."""

    code = "model.failed"


class MissingModelError(ModelError):
    """The model is known but not installed."""

    code = "model.missing"


class ModelIntegrityError(ModelError):
    """The bytes are not those that the manifest pins."""

    code = "model.integrity"


class ConversionError(ModelError):
    """A model file could not be rewritten, or the rewrite's proof failed."""

    code = "model.conversion_failed"


class DownloadError(ModelError):
    """No source of a model file answered."""

    code = "model.download_failed"


class DeviceError(AppError):
    """The machine that runs the networks failed."""

    code = "device.failed"


class DeviceUnavailableError(DeviceError):
    """The asked-for device does not really work."""

    code = "device.unavailable"


class OutOfDeviceMemoryError(DeviceError):
    """The device has no memory left at the smallest batch."""

    code = "device.out_of_memory"


class OutputError(AppError):
    """The result could not be made or kept."""

    code = "output.failed"


class UnwritableOutputError(OutputError):
    """The output's folder is missing or closed to us."""

    code = "output.unwritable"


class UnsupportedOutputError(OutputError):
    """The output's name asks for a format that this input cannot become."""

    code = "output.unsupported_type"


class StorageFullError(OutputError):
    """The disk is full."""

    code = "storage.full"


class LabelError(OutputError):
    """The labels read back from the output are not those that were written."""

    code = "label.not_verified"


class JobError(AppError):
    """A job that cannot go on."""

    code = "job.failed"


class JobNotFoundError(JobError):
    """No job has this id."""

    code = "job.not_found"


class JobNotFinishedError(JobError):
    """The job has no result yet."""

    code = "job.not_finished"


class QueueFullError(JobError):
    """As many jobs wait as the operator allows."""

    code = "queue.full"


class LeaseLostError(JobError):
    """Somebody else runs the job by now; whatever this process made of it is void."""

    code = "job.lease_lost"


class EngineNotRunningError(JobError):
    """No engine is there to run jobs."""

    code = "engine.not_running"


class EngineBusyError(JobError):
    """The engine is there, and has no time for a short call."""

    code = "engine.busy"


class WorkerLostError(JobError):
    """The process that ran the job died, more often than a retry makes sense."""

    code = "job.worker_lost"


class Cancelled(JobError):  # noqa: N818 - somebody's wish, not a failure
    """Somebody asked to stop."""

    code = "job.canceled"
