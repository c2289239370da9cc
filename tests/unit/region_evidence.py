"""Evidence of small audits for the diagnosis, with plain numbers where a test does not care."""

import math

from evidep.stats.regions import AblationEvidence, AuditEvidence, ReaderEvidence
from evidep.types import DeltaEvi, Interval

MARGIN = 0.02
NAN = math.nan


def delta(verdict, effect=None, *, accuracy=0.8, k=20, items_needed=None, negligible=False, reason=None, ci=None):
    effect = (
        {"sensitive": 0.3, "equivalent": 0.001, "inconclusive": 0.03, "not_applicable": NAN}[verdict]
        if (effect is None)
        else effect
    )
    ci = ci or Interval(effect - 0.01, effect + 0.01)
    return DeltaEvi(
        verdict=verdict,
        mean=effect,
        sd_population=0.003,
        exact=NAN,
        sd_permutation=NAN,
        standard_error=0.005,
        ci=ci,
        ci_equivalence=ci,
        p_value=1 / (k + 1),
        p_method="permutation",
        minimum_detectable_effect=0.014,
        accuracy_full=accuracy,
        accuracy_shuffled=(accuracy - effect,) * k,
        n_items=600,
        n_groups=500,
        unchanged_rate=0.0,
        unmovable_share=0.0,
        items_needed=items_needed,
        negligible=negligible,
        reason=reason,
    )


def reader(strength, verdict, *, name=None, accuracy=0.8, works=True, seed=0, interaction=None, within=None, **more):
    shuffles = {"global": delta(verdict, accuracy=accuracy)} if isinstance(verdict, str) else {"global": verdict}
    if within is not None:
        shuffles["within-label"] = delta(within, accuracy=accuracy)
    return ReaderEvidence(
        name=name or {"light": "tfidf_lr", "middle": "minilm_lr", "strong": "minilm", "baseline": "majority"}[strength],
        strength=strength,
        works=works,
        interaction=strength in ("middle", "strong") if interaction is None else interaction,
        contamination=more.pop("contamination", None),
        accuracy_full=accuracy,
        delta=shuffles,
        seed=seed,
        **more,
    )


def query_only(name, accuracy, half_width=0.03, **more):
    ci = Interval(accuracy - half_width, accuracy + half_width)
    return AblationEvidence(name, "query-only", "retrained", accuracy, ci, **more)


def evidence(*readers, ablations=(), mpds=0.5, corrected=NAN, majority=0.34, n_classes=3, **more):
    return AuditEvidence(
        margin=MARGIN,
        alpha=0.05,
        majority_rate=majority,
        n_classes=n_classes,
        readers=readers,
        ablations=tuple(ablations),
        mpds=mpds,
        mpds_ci=more.pop("mpds_ci", None if mpds is None else Interval(mpds - 0.02, mpds + 0.02)),
        mpds_chance_corrected=corrected,
        **more,
    )
