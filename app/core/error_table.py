"""What every error code means at the doors: HTTP status, exit code, and a sentence in English and in Chinese."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from app.core.errors import AppError

Language = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One line of the table.

    Attributes:
        http_status: What an HTTP client gets.
        exit_code: What a shell gets: 2 wrong usage, 3 the input was refused, 4 policy, 5 device or model, 1 the rest.
        en: One or two sentences for people; the error's own message has the particulars.
        zh: The same in Chinese.
    """

    http_status: int
    exit_code: int
    en: str
    zh: str

    def text(self, language: Language = "en") -> str:
        """The sentence in a language."""
        return self.zh if language == "zh" else self.en


ERROR_TABLE: Final[Mapping[str, ErrorEntry]] = MappingProxyType(
    {
        "internal.unexpected": ErrorEntry(
            500,
            1,
            "Something unexpected went wrong. The log says more; please report it.",
            "发生了意外错误。日志中有详细信息，请反馈给我们。",
        ),
        "request.bad_option": ErrorEntry(
            422, 2, "An option has a value that makes no sense here.", "某个选项的值无效。"
        ),
        "request.unknown_model": ErrorEntry(
            422, 2, "There is no model of this name.", "没有这个名称的模型。"
        ),
        "request.unknown_processor": ErrorEntry(
            422, 2, "There is no processing step of this name.", "没有这个名称的处理步骤。"
        ),
        "request.bad_name": ErrorEntry(
            400,
            2,
            "The file name holds characters that are not accepted, or is too long. Rename the file.",
            "文件名包含不允许的字符或过长，请重命名文件。",
        ),
        "request.too_large": ErrorEntry(
            413,
            2,
            "The upload is larger than this server accepts.",
            "上传的文件超过了服务器允许的大小。",
        ),
        "request.not_found": ErrorEntry(
            404, 2, "There is nothing here under this address.", "此地址下没有内容。"
        ),
        "request.in_use": ErrorEntry(
            409,
            2,
            "A job that is not finished still needs this. Cancel the job, or wait for it.",
            "未完成的任务仍在使用它，请取消任务或等待其完成。",
        ),
        "request.key_reused": ErrorEntry(
            409,
            2,
            "This idempotency key came with a different request before. Use a new key.",
            "该幂等键已用于另一个请求，请使用新的键。",
        ),
        "request.bad_multipart": ErrorEntry(
            400,
            2,
            "The form must hold exactly one file, in a field with a file name.",
            "表单格式错误：必须且只能包含一个文件。",
        ),
        "request.bad_host": ErrorEntry(
            421,
            2,
            "This server does not answer to this host name. Its operator can allow the name.",
            "服务器不接受此主机名，管理员可以将其加入允许列表。",
        ),
        "auth.cross_site": ErrorEntry(
            403,
            1,
            "The request came from another site's page and was refused.",
            "请求来自其他网站的页面，已被拒绝。",
        ),
        "consent.required": ErrorEntry(
            422,
            2,
            "Say on what ground you may use these faces: your own, with permission, fictional, or public domain.",
            "请说明使用这些人脸的依据：本人、已获许可、虚构人物或公有领域。",
        ),
        "media.unreadable": ErrorEntry(
            422,
            3,
            "This file cannot be read as a picture or video.",
            "无法将此文件读取为图片或视频。",
        ),
        "media.not_found": ErrorEntry(404, 3, "There is no such file.", "文件不存在。"),
        "media.empty": ErrorEntry(422, 3, "The file is empty.", "文件为空。"),
        "media.unsupported_type": ErrorEntry(
            415,
            3,
            "This is no picture or video of a kind that is read here.",
            "不支持这种类型的图片或视频。",
        ),
        "media.unsupported_codec": ErrorEntry(
            415,
            3,
            "The video uses a codec that is not read here. Convert it to H.264.",
            "不支持该视频的编码格式，请转换为 H.264。",
        ),
        "media.truncated": ErrorEntry(
            422,
            3,
            "The file is cut off: its end is missing. Upload it again, or take another copy.",
            "文件不完整，结尾缺失。请重新上传或更换文件。",
        ),
        "media.damaged": ErrorEntry(
            422, 3, "Too much of the file is damaged.", "文件损坏过多，无法处理。"
        ),
        "media.too_large": ErrorEntry(
            422,
            3,
            "The picture or video has more pixels, frames or seconds than this server accepts.",
            "图片或视频的像素、帧数或时长超过了服务器的限制。",
        ),
        "media.bad_dimensions": ErrorEntry(
            422,
            3,
            "The width, height or frame rate makes no usable picture.",
            "宽度、高度或帧率无效。",
        ),
        "media.size_changed": ErrorEntry(
            422,
            3,
            "The picture changes its size in the middle of the video.",
            "视频中途改变了画面尺寸。",
        ),
        "media.no_video": ErrorEntry(
            422, 3, "The file holds no picture and no video.", "文件中没有图像或视频。"
        ),
        "face.unusable": ErrorEntry(422, 3, "A face cannot be used.", "人脸无法使用。"),
        "face.none_in_source": ErrorEntry(
            422,
            3,
            "No face was found in a source picture. Take one that shows the face from the front.",
            "源图片中没有找到人脸，请使用正面清晰的照片。",
        ),
        "face.ambiguous": ErrorEntry(
            422,
            3,
            "A source picture shows several faces. Choose one, or crop the picture to it.",
            "源图片中有多张人脸，请选择其中一张，或裁剪为只包含所需的一张。",
        ),
        "face.sources_disagree": ErrorEntry(
            422,
            3,
            "The photos of the source face show different people. Give photos of one person only.",
            "源人脸的照片显示的是不同的人，请只提供同一个人的照片。",
        ),
        "face.none_in_target": ErrorEntry(
            422,
            3,
            "No face was found in the picture to change.",
            "目标图片中没有找到人脸。",
        ),
        "face.no_such_person": ErrorEntry(
            422,
            2,
            "The target does not show the person you chose.",
            "目标中没有所选的人物。",
        ),
        "face.degenerate_kps": ErrorEntry(
            422,
            3,
            "The face is too small or too distorted to be aligned.",
            "人脸太小或变形过大，无法对齐。",
        ),
        "policy.refused": ErrorEntry(
            422, 4, "This is refused on principle.", "根据使用政策，请求被拒绝。"
        ),
        "policy.intimate_content": ErrorEntry(
            422,
            4,
            "The content filter saw intimate content, so nothing was made. The filter can be wrong.",
            "内容过滤器检测到私密内容，未生成结果。过滤器可能误判。",
        ),
        "policy.gate_unavailable": ErrorEntry(
            503,
            4,
            "The content filter cannot run, so no job can. Install the models again.",
            "内容过滤器无法运行，因此不能执行任务。请重新安装模型。",
        ),
        "model.failed": ErrorEntry(500, 5, "A model failed.", "模型运行失败。"),
        "model.missing": ErrorEntry(
            503,
            5,
            "A model that this needs is not installed: `python -m app models list` shows all, "
            "`models pull embedded` installs the free ones.",
            "缺少所需的模型：`python -m app models list` 列出全部，`models pull embedded` 安装免费的内置模型。",
        ),
        "model.integrity": ErrorEntry(
            503,
            5,
            "A model file is not the one that was published. Delete it and install it again.",
            "模型文件与发布版本不一致，请删除后重新安装。",
        ),
        "model.conversion_failed": ErrorEntry(
            500, 5, "A model file could not be converted.", "模型文件转换失败。"
        ),
        "model.download_failed": ErrorEntry(
            502,
            5,
            "A model could not be fetched. Check the network and try again.",
            "模型下载失败，请检查网络后重试。",
        ),
        "device.failed": ErrorEntry(
            500, 5, "The device that runs the models failed.", "运行模型的设备发生故障。"
        ),
        "device.unavailable": ErrorEntry(
            503,
            5,
            "The chosen device does not work. `python -m app doctor` says what does.",
            "所选设备不可用，运行 `python -m app doctor` 查看可用设备。",
        ),
        "device.out_of_memory": ErrorEntry(
            503,
            5,
            "The device has too little memory for this job. Try a smaller target.",
            "设备内存不足，请尝试更小的目标文件。",
        ),
        "output.failed": ErrorEntry(
            500, 1, "The result could not be made or kept.", "无法生成或保存结果。"
        ),
        "output.unwritable": ErrorEntry(
            500,
            2,
            "The result's folder is missing or cannot be written to.",
            "输出文件夹不存在或无法写入。",
        ),
        "output.unsupported_type": ErrorEntry(
            422,
            2,
            "The result cannot be made in this format. Keep the target's own.",
            "无法生成此格式的结果，请使用与目标相同的格式。",
        ),
        "storage.full": ErrorEntry(
            507,
            1,
            "The server's disk is full. Delete what you no longer need and try again.",
            "服务器磁盘已满，请删除不需要的内容后重试。",
        ),
        "label.not_verified": ErrorEntry(
            500,
            1,
            "The label that says the result is AI-edited could not be confirmed, so nothing was kept.",
            "无法确认结果中的 AI 标识，因此未保存结果。",
        ),
        "job.failed": ErrorEntry(500, 1, "The job failed.", "任务失败。"),
        "job.not_found": ErrorEntry(404, 1, "There is no such job.", "任务不存在。"),
        "job.not_finished": ErrorEntry(
            409, 1, "The job has no result, or not yet.", "任务没有结果，或尚未完成。"
        ),
        "queue.full": ErrorEntry(
            429,
            1,
            "Too many jobs are waiting. Try again in a while.",
            "等待中的任务过多，请稍后再试。",
        ),
        "job.lease_lost": ErrorEntry(
            500, 1, "Another engine has taken the job over.", "任务已由另一个引擎接管。"
        ),
        "engine.not_running": ErrorEntry(
            503,
            1,
            "No engine is running yet. Jobs are kept and start when one does.",
            "引擎尚未运行。任务会保留，引擎启动后自动执行。",
        ),
        "engine.busy": ErrorEntry(
            503,
            1,
            "The engine has too much to do at the moment. Try again in a while.",
            "引擎正忙，请稍后再试。",
        ),
        "job.worker_lost": ErrorEntry(
            500,
            1,
            "The engine died while it ran this job, several times. A smaller target may work.",
            "引擎在执行此任务时多次崩溃，请尝试更小的目标文件。",
        ),
        "job.canceled": ErrorEntry(409, 1, "The job was canceled.", "任务已取消。"),
    }
)


def entry_of(code: str) -> ErrorEntry:
    """The table's line for a code; a code of a newer release reads as an unexpected error."""
    return ERROR_TABLE.get(code, ERROR_TABLE[AppError.code])


def entry_for(error: AppError) -> ErrorEntry:
    """The table's line for an error."""
    return entry_of(error.code)


def error_of(code: str, message: str) -> AppError:
    """The error of a code that another process has named; one of a newer release reads as an unexpected error."""
    kinds = [AppError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((kind for kind in kinds if kind.code == code), AppError)(message)


def without_paths(text: str) -> str:
    """Cut absolute paths of this machine down to their last part, so that a message tells nobody its layout."""
    return re.sub(r"(?<![\w.:/])(?:/[^/\s:'\",;()]+)+/([^/\s:'\",;()]+)", r"\1", text)
