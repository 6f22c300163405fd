"""What each paper is, for whoever only asks: nothing of a paper is imported for its card, and nothing that computes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """A study in words, `subject` in a sentence, and how many figures and claims it has here."""

    name: str
    title: str
    authors: str
    reference: str
    subject: str
    summary: str
    figures: int
    claims: int

    @classmethod
    def of(cls, study: Any) -> "Card":
        """The card of a study that is there."""
        words = {name: getattr(study, name) for name in ("name", "title", "authors", "reference", "summary")}
        subject = (study.summary or study.title).partition("\n")[0]
        return cls(**words, subject=subject, figures=len(study.figures), claims=len(study.claims))

    @property
    def words(self) -> dict[str, Any]:
        """All but the subject and the numbers: what a `Study` says of itself."""
        return {name: getattr(self, name) for name in ("name", "title", "authors", "reference", "summary")}


_ALL = (
    Card(
        name="beyond_ntk",
        title="Learning Over-Parametrized Two-Layer ReLU Neural Networks beyond NTK",
        authors="Yuanzhi Li, Tengyu Ma, Hongyang R. Zhang",
        reference="Conference on Learning Theory (COLT), 2020.",
        subject="Over-parametrised two-layer ReLU networks beyond the neural tangent kernel.",
        summary="A student 1/m sum |w| s(w.x) learns sum a_i |z_i| by truncated gradient descent. Orders 0 and 2 of "
        "the loss go first, order 4 waits on a plateau until lottery tickets win, and the network ends below "
        "what any kernel reaches with as many samples. Constants that the paper leaves open are derived and "
        "measured.",
        figures=18,
        claims=98,
    ),
    Card(
        name="both_layers",
        title="When Both Layers Learn: Training Dynamics of Representing Linear Models via ReLU Networks",
        authors="Berk Tinaz, Changzhi Xie, Mahdi Soltanolkotabi",
        reference="Conference paper; editors: Steve Hanneke and Tor Lattimore.",
        subject="A ReLU network with both layers trained on a linear target.",
        summary="A two-layer ReLU network with both layers trained learns a linear target in three phases: alignment,"
        " growth, local refinement. The landscape has saddles that are not strict; a small start avoids them "
        "exactly when both signs occur among its growing modes, and with several outputs units end in "
        "antiparallel pairs.",
        figures=16,
        claims=70,
    ),
    Card(
        name="cluster_moe",
        title="Mixture of Experts Provably Detect and Learn the Latent Cluster Structure in Gradient-Based Learning",
        authors="Ryotaro Kawata, Kohsei Matsutani, Yuri Kinoshita, Naoki Nishikawa, Taiji Suzuki",
        reference="International Conference on Machine Learning (ICML), 2025.",
        subject="A mixture of experts that finds the clusters of its inputs, and a vanilla network that does not.",
        summary="Inputs in clusters, each with a task of its own and a global one that interferes. Experts explore, a"
        " router learns who knows which cluster, experts learn what they are sent, and a second layer is "
        "fitted. A vanilla network on the same samples learns the local tasks and misses the global one.",
        figures=20,
        claims=121,
    ),
    Card(
        name="relu_teachers",
        title="How do students become teachers: A dynamical analysis for two-layer neural networks",
        authors="Anonymous authors",
        reference="A submission without names or venue; by its abstract, that of Zhenyu Zhu, Fanghui Liu and Volkan "
        "Cevher, How Gradient descent balances features, ICLR 2025 (openreview.net/forum?id=25j2ZEgwTj).",
        subject="ReLU students of orthogonal ReLU teachers.",
        summary="m ReLU students learn from k orthogonal ReLU teachers. The paper's picture is align, grow, converge "
        "with loss ~ T^-3. With two teachers or more the students first collapse onto the mean direction of "
        "the teachers and wait on a saddle there, the longer the smaller they began; then the end of the story holds.",
        figures=12,
        claims=91,
    ),
    Card(
        name="soft_moe",
        title="Guided by the Experts: Provable Feature Learning Dynamic of Soft-Routed Mixture-of-Experts",
        authors="Fangshuo Liao, Anastasios Kyrillidis",
        reference="AISTATS 2026, PMLR 300.",
        subject="A soft-routed mixture of experts learns from one.",
        summary="Routers and experts of m students learn jointly from m* teacher experts. The paper's picture is "
        "recovery one teacher after another, in the order of a greedy matching, then pruning and fine-tuning."
        " From its own random start students cancel each other in pairs and the order is another; from "
        "orthonormal starts the theorem holds.",
        figures=21,
        claims=110,
    ),
)
CARDS = {card.name: card for card in _ALL}
