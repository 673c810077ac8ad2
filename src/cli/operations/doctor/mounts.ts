import { readFile } from 'node:fs/promises'
import type { PlannedMount } from '../../../config/plan.ts'
import { createCatalog, type Mount } from '../../../core/catalog.ts'
import { defined } from '../../../core/kit/defined.ts'
import type { Degradation } from '../../../core/provider.ts'
import type { LazyStore } from '../../../providers/mount-settings.ts'
import { formatProblem } from '../../../testing/index.ts'
import type { Diagnosis, Findings } from '../../commands/doctor.ts'
import { counted } from '../../terminal/format.ts'
import { checkMount, hiddenFrom, isWrong, type MountReport } from '../check-mounts.ts'
import type { Case } from './case.ts'
import { checkIndex } from './store.ts'

/** Opens each complete mount, checks its answers, and watches it for a moment. */
export async function checkMounts(
  here: Case,
  lacking: ReadonlySet<string>,
  store: LazyStore | undefined,
  findings: Findings,
): Promise<void> {
  const { mounts, limit, log, secrets, local } = here
  const opened: Mount[] = []
  let isFine = lacking.size === 0
  for (const [i, planned] of mounts.entries()) {
    if (lacking.has(planned.address)) continue
    findings.doing(`Looking at ${planned.address} (${i + 1} of ${mounts.length})`)
    const settings = { log, scrubber: secrets, ...defined({ store }) }
    const keep: Mount[] = []
    const report = await checkMount(planned, limit, settings, (mount) => keep.push(mount))
    findings.tell(diagnose(report, here))
    isFine &&= !isWrong(report)
    for (const mount of keep) {
      opened.push(mount)
      if (!isWrong(report)) findings.tell(await checkChanges(mount, planned, here))
    }
  }
  // With authentication, roles come from the tokens of the clients. The catalog of this check is closed at the end, with its
  // mounts.
  const hidden = await hiddenFrom(local.principal, opened, log)
  if (local.config?.auth === undefined)
    for (const address of hidden)
      findings.tell({
        check: 'rights',
        status: 'warning',
        found: `No client sees ${address}: its access rules name roles, and nobody has one of them.`,
        fix: `Add "roles": ["…"] to the configuration. What they allow: hikidashi access check ${address}${here.withConfig}`,
      })
  if (isFine) await checkIndex(here, findings)
}

function diagnose(report: MountReport, { placeOf, withConfig }: Case): Diagnosis {
  const { address, provider, failure, problems, examined, complete, milliseconds } = report
  const check = 'mount'
  if (failure !== undefined) {
    const fix = `Correct ${placeOf(['mounts', address])}, then: hikidashi check${withConfig}`
    return { check, status: 'failed', found: failure, fix }
  }
  const [first] = problems
  const away = problems
    .map(({ seen }) => /^it threw unavailable: (.*)/s.exec(seen)?.[1])
    .find((why) => why !== undefined)
  if (away !== undefined) {
    const fix = `Check that its source is up, and ${placeOf(['mounts', address])}, then: hikidashi check${withConfig}`
    return { check, status: 'failed', found: `${address} (${provider}): ${away}`, fix }
  }
  if (first !== undefined) {
    const more = problems.length === 1 ? '' : `, and ${problems.length - 1} more`
    const fix = `It contradicts itself${more}. Everything that was seen: hikidashi check${withConfig} --json`
    return { check, status: 'failed', found: `${address} (${provider}): ${formatProblem(first)}`, fix }
  }
  const amount = `${counted(examined, 'entry', 'entries')}${complete ? '' : ' and more'} listed and read`
  return { check, status: 'ok', found: `${address} (${provider}): ${amount}, ${milliseconds} ms` }
}

/** Checks whether a mount notifies of its changes, and of all of them. */
async function checkChanges(mount: Mount, { config, address }: PlannedMount, here: Case): Promise<Diagnosis> {
  const check = 'changes'
  if (mount.provider.watch === undefined) {
    // Fixed sources, and sources computed for each request, have no changes to report.
    const isStill = ['inline', 'env', 'screen', 'search'].includes(config.provider)
    if (isStill) return { check, status: 'ok', found: `${address}: there are none to tell of` }
    const fix = `Add "poll": "60s" at ${here.placeOf(['mounts', address])}`
    return { check, status: 'warning', found: `${address}: it tells of no changes.`, fix }
  }
  const degradation = await listen(mount)
  if (degradation === undefined) return { check, status: 'ok', found: `${address}: they are told` }
  if (degradation !== 'limited')
    return {
      check,
      status: 'failed',
      found: `${address}: they are not told just now, since its source does not answer.`,
      fix: `hikidashi watch ${address}${here.withConfig} --log-level debug`,
    }
  const watches = await inotifyWatches()
  const found = `${address}: there are too many folders to watch${watches === undefined ? '' : ` (this system allows ${watches.toLocaleString('en')})`}: some are compared now and then.`
  const fix =
    watches === undefined
      ? 'Leave folders out with "exclude".'
      : `sudo sysctl fs.inotify.max_user_watches=${Math.max(524_288, watches * 2)}\nTo keep it, write that into /etc/sysctl.d/60-inotify.conf. Or leave folders out with "exclude".`
  return { check, status: 'warning', found, fix }
}

/** Watches a mount, and resolves to the reason if the watch is degraded. */
async function listen(mount: Mount): Promise<Degradation | undefined> {
  const { provider, address } = mount
  // Access rules do not matter here, and the opener of the mount closes it.
  const catalog = createCatalog({ mounts: [{ address, provider: { ...provider, close: async () => {} } }] })
  const subscription = catalog.view({ id: 'hikidashi-doctor', roles: [] }).subscribe?.(() => {})
  try {
    const heard = (await subscription?.add([`${address.replace(/\/$/, '')}/`])) ?? []
    const degradation = catalog.reader(address)?.degraded()
    return degradation ?? (heard.length === 0 ? 'unavailable' : undefined)
  } finally {
    subscription?.close()
    await catalog.close()
  }
}

/** Maximum number of folders that a user may watch on Linux. */
async function inotifyWatches(): Promise<number | undefined> {
  const text = await readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(() => '')
  const number = Number.parseInt(text, 10)
  return Number.isNaN(number) ? undefined : number
}
