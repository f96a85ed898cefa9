"""A face map becomes roles: the faces to put on are made, the chosen people are found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np

from app.core.errors import NoSuchPersonError, UsageError
from app.core.geometry import FloatArray
from app.core.types import Face, Frame, Identity, Notice
from app.faces.assign import LEFT_ALONE, Assigner, Role, Treatment, likeness
from app.faces.matching import likest_pairs
from app.faces.person import Place
from app.faces.zoo_recognizer import ArcFaceRecognizer, described
from app.pipeline.source import source_identity
from app.pipeline.spec import Action, PersonChoice, PersonOrder, RenderSpec, SourceFace
from app.pipeline.tools import Tools


class KnownPerson(Protocol):
    """What has to be known of a person of the target; `app.faces.person.Person` is one."""

    @property
    def number(self) -> int:
        """From 1."""
        ...

    @property
    def normed_embeddings(self) -> FloatArray:
        """`(k, 128)`, rows of unit length."""
        ...

    @property
    def size_range_px(self) -> tuple[float, float]:
        """Widths of the smallest and the largest face."""
        ...

    @property
    def places(self) -> tuple[Place, ...]:
        """Where the person was seen, at least one."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PersonInStill:
    """Somebody in a still; see `KnownPerson`."""

    number: int
    normed_embeddings: FloatArray
    size_range_px: tuple[float, float]
    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chosen:
    """One choice of a face map, ready.

    Attributes:
        who: How the choice calls the person, such as "person 2" or "reference 1".
        choice: As it was asked for.
        treatment: What happens to the person's face.
        embedding: `(128,)` of the reference photo, where the choice names one.
    """

    who: str
    choice: PersonChoice[Path]
    treatment: Treatment
    embedding: FloatArray | None = None


class Casting:
    """A face map whose faces are made; who is who is said once the target's people are known.

    Args:
        chosen: The choices.
        others: What happens to everybody else.
        threshold: Least likeness, 0 to 1.
        notices: What is to be known of the photos.
    """

    def __init__(
        self,
        chosen: Sequence[Chosen],
        *,
        others: Treatment,
        threshold: float,
        notices: Sequence[Notice] = (),
    ) -> None:
        self._chosen = tuple(chosen)
        self._others = others
        self._threshold = threshold
        self._notices = list(notices)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is known so far."""
        return tuple(self._notices)

    @property
    def changed(self) -> tuple[str, ...]:
        """How the people are called for whom a change was chosen."""
        return tuple(
            chosen.who
            for chosen in self._chosen
            if chosen.treatment.identity is not None or chosen.treatment.is_blurred
        )

    @property
    def needs_people(self) -> bool:
        """Whether a choice names somebody whom only a look through the whole target can find."""
        return any(chosen.embedding is None for chosen in self._chosen)

    def by_likeness(self) -> Assigner:
        """For a target whose people nobody has looked for; only reference photos can be known again."""
        roles = [
            Role(who=each.who, normed_embeddings=each.embedding[None], treatment=each.treatment)
            for each in self._chosen
            if each.embedding is not None
        ]
        return Assigner(roles, others=self._others, threshold=self._threshold)

    def among(self, people: Sequence[KnownPerson], *, clock_s: float = 0.0) -> Assigner:
        """For a target whose people are known.

        Args:
            people: As `find_people` found them.
            clock_s: What is to be added to a frame's time to get the time of the people's places.

        Raises:
            NoSuchPersonError: A number or a place in an order is higher than the number of people.
            UsageError: Two choices mean one person.
        """
        takers = self._takers(people)
        roles = [self._role_of(person, takers.get(person.number)) for person in people]
        return Assigner(roles, others=self._others, threshold=self._threshold, clock_s=clock_s)

    def _role_of(self, person: KnownPerson, chosen: Chosen | None) -> Role:
        return Role(
            who=None if chosen is None else chosen.who,
            normed_embeddings=person.normed_embeddings,
            treatment=self._others if chosen is None else chosen.treatment,
            places=person.places,
        )

    def _takers(self, people: Sequence[KnownPerson]) -> dict[int, Chosen]:
        """By the number of the person whom it means: each choice."""
        takers: dict[int, Chosen] = {}
        for chosen in self._chosen:
            if chosen.embedding is None:
                number = _number(chosen, people)
                if number in takers:
                    raise UsageError(
                        f"{takers[number].who} and {chosen.who} are one person; choose once what happens"
                    )
                takers[number] = chosen
        free = [person for person in people if person.number not in takers]
        return {**takers, **self._recognized(free)}

    def _recognized(self, people: Sequence[KnownPerson]) -> dict[int, Chosen]:
        """Whom the reference photos show."""
        wanted = [(each, each.embedding) for each in self._chosen if each.embedding is not None]
        alike = np.array(
            [[likeness(p.normed_embeddings, embedding) for p in people] for _, embedding in wanted],
            np.float32,
        ).reshape(len(wanted), len(people))
        found = dict(likest_pairs(alike, self._threshold))
        for row, (chosen, _) in enumerate(wanted):
            if row not in found:
                text = f"nobody in the target is enough like {chosen.who}; a lower threshold takes more"
                self._notices.append(Notice("face.reference_not_found", text))
        return {people[column].number: wanted[row][0] for row, column in found.items()}


def prepare_casting(
    spec: RenderSpec, tools: Tools, *, recognizers: Sequence[ArcFaceRecognizer] = ()
) -> Casting:
    """Make the faces that a request wants to put on, and read its reference photos.

    Args:
        spec: The request.
        tools: The networks.
        recognizers: Besides the tools' own, those that have to describe the faces to put on.

    Raises:
        AppError: A photo cannot be used.
    """
    wardrobe = _Wardrobe(spec, tools, recognizers)
    chosen, references = [], 0
    for choice in spec.face_map.choices:
        references += choice.reference is not None
        who = _told(choice, references)
        embedding = None
        if choice.reference is not None:
            photo = SourceFace[Path](photos=(choice.reference,), face=choice.reference_face)
            embedding = wardrobe.identity(photo, who, tells=False).normed_embedding
        treatment = wardrobe.treatment(choice.action, f"face for {who}")
        chosen.append(Chosen(who=who, choice=choice, treatment=treatment, embedding=embedding))
    return Casting(
        chosen,
        others=wardrobe.treatment(spec.face_map.others, "source"),
        threshold=spec.face_map.threshold,
        notices=wardrobe.notices,
    )


def people_in(frame: Frame) -> tuple[PersonInStill, ...]:
    """The people of a still whose faces are known, numbered left to right, as `find_people` would."""
    return tuple(_person(number, face) for number, face in enumerate(frame.faces, start=1))


class _Wardrobe:
    """Makes each face once, however many people get it."""

    def __init__(
        self, spec: RenderSpec, tools: Tools, recognizers: Sequence[ArcFaceRecognizer]
    ) -> None:
        self._spec = spec
        self._tools = tools
        self._recognizers = recognizers
        self._identities: dict[SourceFace[Path], Identity] = {}
        self.notices: list[Notice] = []

    def treatment(self, action: SourceFace[Path] | Action, label: str) -> Treatment:
        if action == "leave":
            return LEFT_ALONE
        if action == "blur":
            return Treatment(is_blurred=True)
        if action == "source":
            action, label = SourceFace[Path](photos=self._spec.sources), "source"
        identity = self.identity(action, label)
        for recognizer in self._recognizers:
            identity = described(identity, recognizer)
        self._identities[action] = identity
        return Treatment(identity=identity)

    def identity(self, face: SourceFace[Path], label: str, *, tells: bool = True) -> Identity:
        if face not in self._identities:
            identity, notices = self._made(face, label)
            self._identities[face] = identity
            self.notices += notices if tells else ()
        return self._identities[face]

    def _made(self, face: SourceFace[Path], label: str) -> tuple[Identity, tuple[Notice, ...]]:
        if face.saved is not None:
            return self._tools.saved_face(face.saved), ()
        return source_identity(face.photos, self._tools, label=label, face=face.face)


_ORDERS: Final[Mapping[PersonOrder, Callable[[KnownPerson], float]]] = MappingProxyType(
    {
        "leftmost": lambda person: _middle(person, 0),
        "rightmost": lambda person: -_middle(person, 0),
        "topmost": lambda person: _middle(person, 1),
        "bottommost": lambda person: -_middle(person, 1),
        "largest": lambda person: -person.size_range_px[1],
        "smallest": lambda person: person.size_range_px[1],
    }
)


def _told(choice: PersonChoice[Path], reference: int) -> str:
    if choice.person is not None:
        return f"person {choice.person}"
    if choice.order is not None:
        return choice.order if choice.rank == 1 else f"{choice.order} {choice.rank}"
    return f"reference {reference}"


def _number(chosen: Chosen, people: Sequence[KnownPerson]) -> int:
    """The number of the person whom a choice means."""
    choice = chosen.choice
    place = choice.rank if choice.person is None else choice.person
    if place > len(people):
        raise NoSuchPersonError(
            f"the target shows {len(people)} people, so there is no {chosen.who}; "
            "`python -m app people FILE` shows them with their numbers"
        )
    if choice.order is None:
        return place
    key = _ORDERS[choice.order]
    return sorted(people, key=lambda person: (key(person), person.number))[place - 1].number


def _middle(person: KnownPerson, axis: int) -> float:
    """Where the person usually is, pixels."""
    boxes = np.stack([place.bbox_xyxy for place in person.places])
    return float(np.median(boxes[:, axis] + boxes[:, axis + 2]) / 2)


def _person(number: int, face: Face) -> PersonInStill:
    width_px = float(face.bbox_xyxy[2] - face.bbox_xyxy[0])
    known = np.zeros(128, np.float32) if face.embedding is None else face.embedding
    return PersonInStill(
        number=number,
        normed_embeddings=known[None],
        size_range_px=(width_px, width_px),
        places=(Place(time_s=0.0, bbox_xyxy=face.bbox_xyxy),),
    )
