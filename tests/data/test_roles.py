"""Column names to roles."""

import pytest

from evidep.data.roles import check_columns, infer_roles, inferred
from evidep.errors import DataError
from evidep.types import ColumnRoles


@pytest.mark.parametrize(
    ("columns", "query", "evidence", "label"),
    [
        (["premise", "hypothesis", "label"], "hypothesis", "premise", "label"),
        (["idx", "Sentence1", "SENTENCE_2", "gold_label"], "SENTENCE_2", "Sentence1", "gold_label"),
        (["question", "passage", "answer"], "question", "passage", "answer"),
        (["id", "title", "context", "question", "answers"], "question", "context", "answers"),
        (["claim", "evidence", "verdict"], "claim", "evidence", "verdict"),
        (["text", "text_pair", "labels"], "text_pair", "text", "labels"),
        (["document", "query", "target"], "query", "document", "target"),
        # LIAR-PLUS: `context` is evidence by name alone, the complete pair wins.
        (["label", "statement", "subject", "context", "justification"], "statement", "justification", "label"),
        # The names of the roles themselves win over every other pair and label.
        (["id", "query", "evidence", "label", "LABELS", "context", "question"], "query", "evidence", "label"),
        (["premise", "hypothesis", "label", "answer"], "hypothesis", "premise", "label"),
        # No complete pair: each side by its own name.
        (["claim", "passage", "label"], "claim", "passage", "label"),
    ],
)
def test_conventional_names(columns, query, evidence, label):
    assert infer_roles(columns) == ColumnRoles(query, evidence, label)


def test_given_roles_narrow_the_search():
    columns = ["claim", "question", "context", "evidence", "label"]
    with pytest.raises(DataError, match="several columns may be the evidence: context, evidence; add --evidence"):
        infer_roles(columns)
    roles = infer_roles(columns, {"query": "claim"})
    assert (roles.query, roles.evidence) == ("claim", "evidence")
    assert infer_roles(columns, {"evidence": "context"}).query == "question"


def test_two_candidates_are_listed_with_the_option_to_add():
    with pytest.raises(DataError) as caught:
        infer_roles(["question", "context", "passage", "label"])
    assert str(caught.value) == (
        "several columns may be the evidence: context, passage; add --evidence COLUMN "
        "(in Python roles={'evidence': COLUMN})"
    )
    with pytest.raises(DataError, match=r"several columns may be the label: label_, gold_label; add --label"):
        infer_roles(["premise", "hypothesis", "label_", "gold_label"])


def test_no_candidate_lists_the_columns():
    with pytest.raises(DataError, match=r"no column is named like the evidence; the columns are a, b; add --evidence"):
        infer_roles(["a", "b"])


def test_metadata_and_group_are_never_inferred():
    roles = infer_roles(["query", "evidence", "label", "metadata", "group", "speaker"])
    assert roles.metadata == ()
    assert roles.group is None


def test_metadata_may_be_one_name_or_several():
    columns = ["query", "evidence", "label", "speaker", "party"]
    assert infer_roles(columns, {"metadata": "speaker"}).metadata == ("speaker",)
    assert infer_roles(columns, {"metadata": ["party", "speaker", "party"]}).metadata == ("party", "speaker")


def test_a_wrong_column_names_the_columns_and_the_close_one():
    with pytest.raises(DataError) as caught:
        infer_roles(["premise", "hypothesis", "label"], {"evidence": "Premises"})
    assert str(caught.value) == (
        "no column 'Premises' for --evidence; the columns are premise, hypothesis, label; did you mean 'premise'?"
    )
    with pytest.raises(DataError, match=r"no column 'speakr' for --metadata.*did you mean 'speaker'"):
        infer_roles(["query", "evidence", "label", "speaker"], {"metadata": ["speakr"]})
    with pytest.raises(DataError, match="split 'train': no column 'label' for --label"):
        check_columns(ColumnRoles("q", "e", "label"), ["q", "e"], "split 'train': ")


def test_a_column_plays_one_part():
    columns = ["query", "evidence", "label", "source"]
    with pytest.raises(DataError, match="column 'query' cannot be both query and evidence"):
        infer_roles(columns, {"query": "query", "evidence": "query"})
    with pytest.raises(DataError, match="column 'label' is the label and cannot be metadata"):
        infer_roles(columns, {"metadata": ["label"]})
    roles = infer_roles(columns, {"metadata": ["source"], "group": "source"})
    assert (roles.metadata, roles.group) == (("source",), "source")


def test_unknown_role_and_wrong_type():
    with pytest.raises(DataError, match="unknown key 'premise'; known are query"):
        infer_roles(["premise", "hypothesis", "label"], {"premise": "premise"})
    with pytest.raises(DataError, match="the label column must be given by name, got int"):
        infer_roles(["premise", "hypothesis", "label"], {"label": 2})


def test_the_report_says_what_was_inferred():
    roles = infer_roles(["premise", "hypothesis", "label"], {"label": "label"})
    assert inferred(roles, {"label": "label"}) == (
        "Columns were chosen by their names: query = 'hypothesis', evidence = 'premise'."
    )
    assert inferred(roles, {"query": "hypothesis", "evidence": "premise", "label": "label"}) is None
