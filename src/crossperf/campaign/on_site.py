"""Campaigns on a site: start and follow them, tell how far they are, cancel them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from crossperf.campaign.driving import CampaignDriver, Say
from crossperf.campaign.ledger import SiteCampaign, alone, new_id, read_settings
from crossperf.campaign.log import TIMES
from crossperf.campaign.progress import SiteProgress
from crossperf.campaign.spec import Spec
from crossperf.campaign.spec import read as read_spec
from crossperf.cluster import ClusterSite
from crossperf.cluster import read as read_site
from crossperf.cluster.arrays import private
from crossperf.cluster.checking import AllocationCheck, check
from crossperf.errors import CollectError

Show = Callable[[SiteProgress], None]


def is_new(output: Path) -> bool:
    """Tell whether a folder holds no campaign on a site yet."""
    return read_settings(output) is None


def settings_for(
    output: Path,
    spec_file: Path,
    site: ClusterSite,
    platforms: Sequence[str],
    counts: Sequence[str],
    visits: int | None,
) -> SiteCampaign:
    """Return the campaign of a folder, new or the one that it holds, with what it is to measure now."""
    known = read_settings(output)
    if known is None and (output / TIMES).exists():
        problem = "holds a campaign that was measured without a site"
        raise CollectError(f"{output}: {problem}. Choose another folder.", path=str(output))
    own = known.id if known else new_id()
    folder = known.folder if known else _jobs_folder(output, site, own)
    files = {"spec": spec_file.absolute(), "site": site.path.absolute()}
    return SiteCampaign(own, folder, **files, platforms=tuple(platforms), counts=tuple(counts), visits=visits)


def _jobs_folder(output: Path, site: ClusterSite, own: str) -> Path:
    return (output.absolute() / "slurm") if site.folder is None else site.folder / f"crossperf-{own}"


def checked(site: ClusterSite, settings: SiteCampaign) -> list[AllocationCheck]:
    """Return what the cluster says to the resources of each platform; a platform that SITE lacks raises."""
    return [check(name, site.allocation(name)) for name in settings.platforms]


def drive(
    spec: Spec,
    site: ClusterSite,
    settings: SiteCampaign,
    output: Path,
    say: Say,
    show: Show,
    *,
    retry: bool = False,
    follow: bool = True,
) -> dict[str, str]:
    """Submit what is missing and follow it to its end; return the platforms whose jobs Slurm does not take, and why."""
    with alone(output):
        private(settings.folder)
        settings.write(output)
        driver = CampaignDriver(spec, site, settings, output, say, show, retry=retry)
        driver.start()
        if follow:
            driver.follow()
        return driver.refused


def opened(output: Path) -> tuple[Spec, ClusterSite, SiteCampaign]:
    """Return the campaign on a site that a folder holds, with its SPEC and SITE."""
    settings = read_settings(output)
    if settings is None:
        expected = "expected the folder of 'crossperf campaign SPEC -o DIR --site SITE.toml'"
        raise CollectError(f"{output}: holds no campaign on a site, {expected}.", path=str(output))
    spec = read_spec(settings.spec)
    return replace(spec, visits=settings.visits or spec.visits), read_site(settings.site), settings


def look(output: Path, say: Say = lambda _: None) -> None:
    """Merge what jobs have written, where no driver does so."""
    spec, site, settings = opened(output)
    with alone(output):
        CampaignDriver(spec, site, settings, output, say, submits=False).start()


def cancel(output: Path, say: Say = lambda _: None, show: Show = lambda _: None, *, driven: bool = False) -> int:
    """Cancel what was submitted, wait until it is gone, and return how many elements that were.

    Parameters
    ----------
    driven
        A driver follows the campaign: it is left to it to merge what comes.
    """
    spec, site, settings = opened(output)
    if driven:
        return CampaignDriver(spec, site, settings, output, submits=False).cancel()
    with alone(output):
        driver = CampaignDriver(spec, site, settings, output, say, show, submits=False)
        driver.start()
        cancelled = driver.cancel()
        driver.follow()
        return cancelled
