"""What no object tells: ages, deletions on their way, answers believed for a while."""

from prfaas.controller.observe import CACHE_LAG_SECONDS, FORGET_SECONDS, Deletions, Once, Sightings


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_fact_ages_from_when_it_was_first_seen() -> None:
    clock = Clock()
    sightings = Sightings(clock)
    assert sightings.age("pod/a") == 0
    clock.now += 12
    assert sightings.age("pod/a") == 12


def test_a_fact_that_ended_starts_anew() -> None:
    clock = Clock()
    sightings = Sightings(clock)
    sightings.age_while("missing", True)
    clock.now += 5
    assert sightings.age_while("missing", True) == 5
    assert sightings.age_while("missing", False) == 0
    clock.now += 5
    assert sightings.age_while("missing", True) == 0


def test_facts_that_nobody_asks_about_are_forgotten() -> None:
    clock = Clock()
    sightings = Sightings(clock)
    sightings.age("pod/a")
    clock.now += FORGET_SECONDS + 1
    sightings.age("pod/b")
    assert sightings.age("pod/a") == 0


def test_a_deletion_is_remembered_until_the_cache_must_have_shown_it() -> None:
    clock = Clock()
    deletions = Deletions(clock)
    deletions.add("a")
    assert deletions.current() == {"a"}
    clock.now += CACHE_LAG_SECONDS
    assert deletions.current() == set()


def test_an_answer_is_believed_for_a_while_and_only_for_the_same_question() -> None:
    clock = Clock()
    once = Once(60.0, clock)
    once.confirm("east uid Service pd", "v1")
    assert once.holds("east uid Service pd", "v1")
    assert not once.holds("east uid Service pd", "v2")
    clock.now += 60
    assert not once.holds("east uid Service pd", "v1")
    once.confirm("east uid Service pd", "v1")
    once.forget("east uid ")
    assert not once.holds("east uid Service pd", "v1")
