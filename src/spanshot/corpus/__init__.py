"""Tag corpora: many files, many workers, every row exactly once, and jobs that continue after a kill."""

from spanshot.corpus.job import CorpusPlan, CorpusReport, plan_corpus, tag_corpus
from spanshot.corpus.settings import CorpusSettings

__all__ = ["CorpusPlan", "CorpusReport", "CorpusSettings", "plan_corpus", "tag_corpus"]
