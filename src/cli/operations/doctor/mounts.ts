import { constants, existsSync } from 'node:fs'
import { access, mkdtemp, readFile, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { folderOption, isSearch, mountSource, type PlannedMount } from '../../../config/plan.ts'
import type { PathStep } from '../../../config/problem.ts'
import { createCatalog, type Mount } from '../../../core/catalog.ts'
import { isResourceError, type ResourceError } from '../../../core/errors.ts'
import { type CheckResult, failedResult, okResult, warningResult } from '../../../core/kit/diagnosis.ts'
import { isLocalFileSystem } from '../../../core/kit/local-disk.ts'
import { defined } from '../../../core/kit/object.ts'
import type { Log } from '../../../core/log.ts'
import type { Degradation } from '../../../core/provider.ts'
import { parseSearchStatus, type SearchStatusMount } from '../../../core/search-answer.ts'
import type { LazyStore } from '../../../providers/source.ts'
import { resolveConfigPath } from '../../../schema/values.ts'
import { formatProblem } from '../../../testing/index.ts'
import { formatCount, formatSize } from '../../terminal/io.ts'
import type { Secrets } from '../../terminal/secrets.ts'
import { checkMount, hasProblem, type MountReport, mountsHiddenFrom } from '../check-mounts.ts'
import { type LocalSetUp, openLocalCatalog, storeSettings } from '../local.ts'
import { readResourceText, searchMountsOf } from '../search-mounts.ts'
import type { CheckReporter } from './findings.ts'

/**
 * Opens and checks the mounts, then the access of clients and, if all is well, the index.
 * @param lacking Addresses of mounts to skip, because something that they need is missing, such as a secret.
 */
export async function checkMounts(
  here: CheckContext,
  lacking: ReadonlySet<string>,
  store: LazyStore | undefined,
  findings: CheckReporter,
): Promise<void> {
  const { mounts, limit, log, secrets, local } = here
  const openMounts: Mount[] = []
  let isFine = lacking.size === 0
  for (const [i, planned] of mounts.entries()) {
    if (lacking.has(planned.address)) continue
    findings.doing(`Looking at ${planned.address} (${i + 1} of ${mounts.length})`)
    const settings = { log, scrubber: secrets, ...defined({ store }) }
    const keep: Mount[] = []
    const report = await checkMount(planned, limit, settings, (mount) => keep.push(mount))
    findings.tell('mount', diagnose(report, here))
    isFine &&= !hasProblem(report)
    for (const mount of keep) {
      openMounts.push(mount)
      if (!hasProblem(report)) findings.tell('changes', await checkChanges(mount, planned, here))
    }
  }
  // With authentication, roles come from the tokens of the clients. `mountsHiddenFrom` also closes the mounts.
  const hiddenMounts = await mountsHiddenFrom(local.principal, openMounts, log)
  if (local.config?.auth === undefined)
    for (const address of hiddenMounts) {
      const look = `hikidashi access check ${address}${here.withConfig}`
      const finding = `No client sees ${address}: its access rules hide everything in it from the roles of the configuration.`
      findings.tell(
        'rights',
        warningResult(finding, `Correct "roles" in the configuration, or "access" of the mount. To see why: ${look}`),
      )
    }
  if (isFine) await checkIndex(here, findings)
}

function diagnose(report: MountReport, { positionOf, withConfig }: CheckContext): CheckResult {
  const { address, provider, failure, isAway = false, problems, examined, complete, milliseconds } = report
  const correct = `${positionOf(['mounts', address])}, then: hikidashi check${withConfig}`
  const isNamed = failure?.includes(address)
  if (isAway)
    return failedResult(
      isNamed ? `${failure}` : `${address} (${provider}): ${failure}`,
      `Check that its source is up, and ${correct}`,
    )
  if (failure !== undefined) return failedResult(failure, `Correct ${correct}`)
  const [first] = problems
  const away = problems
    .map(({ seen }) => /^it threw unavailable: (.*)/s.exec(seen)?.[1])
    .find((why) => why !== undefined)
  if (away !== undefined)
    return failedResult(`${address} (${provider}): ${away}`, `Check that its source is up, and ${correct}`)
  if (first !== undefined) {
    const more = problems.length === 1 ? '' : ` (${problems.length} findings)`
    const fix = `The source breaks its contract${more}. All findings: hikidashi check${withConfig} --json`
    return failedResult(`${address} (${provider}): ${formatProblem(first)}`, fix)
  }
  const amount = `${formatCount(examined, 'entry', 'entries')}${complete ? '' : ' and more'} checked`
  return okResult(`${address} (${provider}): ${amount}, ${milliseconds} ms`)
}

async function checkChanges(mount: Mount, planned: PlannedMount, here: CheckContext): Promise<CheckResult> {
  const { config, address } = planned
  if (mount.provider.watch === undefined) {
    const { isComputed = false, unchanging } = mountSource(config)
    if (isComputed || unchanging?.(config) !== undefined) return okResult(`${address}: it has no changes to report`)
    return warningResult(
      `${address}: it reports no changes.`,
      `Add "poll": "60s" at ${here.positionOf(['mounts', address])}`,
    )
  }
  const degradation = await findWatchDegradation(mount)
  if (degradation === undefined)
    return (await isOnSilentDisk(planned))
      ? warningResult(
          `${address}: its file system reports no changes, so the files are compared periodically.`,
          'Serve a copy on a local disk, or set "reconcile" to the time within which a change must be seen.',
        )
      : okResult(`${address}: it reports its changes`)
  if (degradation !== 'limited')
    return failedResult(
      `${address}: it reports no changes now, since its source does not answer.`,
      `hikidashi watch ${address}${here.withConfig} --log-level debug`,
    )
  if (folderOption(config) === undefined)
    return warningResult(
      `${address}: its source does not report all changes, so its lists are compared periodically.`,
      `To change the interval: "refresh" at ${here.positionOf(['mounts', address])}`,
    )
  const watches = await inotifyWatches()
  const finding = `${address}: there are too many folders to watch${watches === undefined ? '' : ` (this system allows ${watches.toLocaleString('en')})`}: some are compared periodically.`
  const fix =
    watches === undefined
      ? 'Leave folders out with "exclude".'
      : `sudo sysctl fs.inotify.max_user_watches=${Math.max(524_288, watches * 2)}\nTo keep this setting, write it into /etc/sysctl.d/60-inotify.conf. Or leave folders out with "exclude".`
  return warningResult(finding, fix)
}

/** Whether the folder of a mount is on a file system that reports no changes on Linux, such as FUSE or NFS. */
async function isOnSilentDisk({ config, folder }: PlannedMount): Promise<boolean> {
  const folderName = mountSource(config).folder?.prefix === undefined ? folderOption(config) : undefined
  if (folderName === undefined || process.platform !== 'linux') return false
  return statfs(resolveConfigPath(folderName, folder)).then(
    ({ type }) => !isLocalFileSystem(type),
    () => false,
  )
}

async function findWatchDegradation(mount: Mount): Promise<Degradation | undefined> {
  const { provider, address } = mount
  // The opener of the mount closes the provider, so the catalog must not.
  const catalog = createCatalog({ mounts: [{ address, provider: { ...provider, close: async () => {} } }] })
  const subscription = catalog.view({ id: 'hikidashi-doctor', roles: [] }).subscribe?.(() => {})
  try {
    const watchedUris = (await subscription?.add([`${address.replace(/\/$/, '')}/`])) ?? []
    const degradation = catalog.reader(address)?.degraded()
    return degradation ?? (watchedUris.length === 0 ? 'unavailable' : undefined)
  } finally {
    subscription?.close()
    await catalog.close()
  }
}

async function inotifyWatches(): Promise<number | undefined> {
  const text = await readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(() => '')
  const number = Number.parseInt(text, 10)
  return Number.isNaN(number) ? undefined : number
}

export function mountsNeedingStore({ mounts }: CheckContext): readonly string[] {
  return mounts.filter(({ config }) => mountSource(config).keeps === true).map(({ address }) => address)
}

/** Resolves to whether the mounts that need the store can be opened. */
export async function checkStore(
  here: CheckContext,
  store: LazyStore | undefined,
  { tell, doing }: CheckReporter,
): Promise<boolean> {
  const { local, positionOf } = here
  const storeOptions = storeSettings(local)
  if (storeOptions === undefined || store === undefined) return false
  if (mountsNeedingStore(here).length === 0) return true
  doing('Opening the store')
  const where = 'sqlite' in storeOptions ? storeOptions.sqlite.file : 'PostgreSQL'
  const fault = 'sqlite' in storeOptions ? await faultOfFile(storeOptions.sqlite.file) : undefined
  if (fault !== undefined) {
    const elsewhere = local.config === undefined ? 'set XDG_STATE_HOME' : positionOf(['store', 'sqlite'])
    const fix = /\(EROFS\)/.test(fault)
      ? `The file system is mounted read-only. Keep the store elsewhere: ${elsewhere}`
      : `Let this user write there, or keep the store elsewhere: ${elsewhere}`
    const { orMemory = false } = 'sqlite' in storeOptions ? storeOptions.sqlite : {}
    const finding = `The store ${where} cannot be opened: ${fault}`
    tell('store', orMemory ? warningResult(`${finding} The index is kept in memory.`, fix) : failedResult(finding, fix))
    return orMemory
  }
  try {
    const size = 'sqlite' in storeOptions ? await readFileSize(storeOptions.sqlite.file) : undefined
    // A check must not create a missing store.
    if ('sqlite' in storeOptions && size === undefined) {
      tell('store', okResult(`${where} is created at the first write`))
      return true
    }
    const opened = await store.open()
    await opened.collection('hikidashi-doctor').size()
    tell('store', okResult(`${where}${size === undefined ? '' : `, ${formatSize(size)}`}`))
    return true
  } catch (error) {
    if (!isResourceError(error)) throw error
    const fix =
      'sqlite' in storeOptions
        ? fixOfFile(where, error)
        : `Check that the database is up, and the URL at ${positionOf(['store', 'postgres'])}`
    tell('store', failedResult(`${where}: ${error.message}`, fix))
    return false
  }
}

function fixOfFile(file: string, { detail: { fault, reason } }: ResourceError): string {
  switch (fault ?? reason) {
    case 'platform':
      return 'Follow this advice, or keep the store in a database: "store": { "postgres": … }'
    case 'full':
      return `Free some space on the disk of ${file}, or keep the store elsewhere: "store": { "sqlite": … }`
    case 'read-only':
      return `Let this user write to ${dirname(file)}, or keep the store elsewhere: "store": { "sqlite": … }`
    case 'configuration':
      return `Follow this advice, or move ${file} away, with the results in it. hikidashi then creates a new file, and indexes again.`
    default:
      return `Stop the other program that uses ${file}, or move the file away. hikidashi then creates a new file, and indexes again.`
  }
}

/**
 * A folder of /proc seems writable to `access`, and is not. @throws the system error if no folder can be made in
 * `folder`
 */
async function tryFolder(folder: string): Promise<void> {
  await rmdir(await mkdtemp(join(folder, '.hikidashi-')))
}

async function faultOfFile(file: string): Promise<string | undefined> {
  // Opening the store creates missing folders, so the nearest folder that exists counts.
  for (let path = file; ; path = dirname(path)) {
    const code = await (path === file ? access(path, constants.W_OK) : tryFolder(path)).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
    )
    if (code === undefined) return undefined
    if (code !== 'ENOENT' || existsSync(path)) return `${path} cannot be written (${code}).`
  }
}

async function readFileSize(file: string): Promise<number | undefined> {
  return stat(file).then(
    ({ size }) => size,
    () => undefined,
  )
}

async function checkIndex(
  { local, mounts, log, secrets, withConfig }: CheckContext,
  findings: CheckReporter,
): Promise<void> {
  if (!mounts.some(({ config }) => isSearch(config))) return
  findings.doing('Asking the index')
  const catalog = await openLocalCatalog(local, log, secrets)
  try {
    const view = catalog.view(local.principal)
    for (const searchMount of await searchMountsOf(view)) {
      const status = parseSearchStatus(await readResourceText(view, searchMount.status))
      if (status === undefined) continue
      const { documents = 0, indexing, embedding } = status
      const behind = status.mounts.filter(({ state }) => state !== 'current')
      const failing = embedding?.failing
      const about = `${searchMount.address}: ${formatCount(documents, 'document')}`
      if (failing !== undefined) {
        const fix = `Check "embeddings" of ${searchMount.address}; search by words still works.`
        findings.tell('index', warningResult(`${about}; no vectors can be made now: ${failing}`, fix))
      } else if (behind.length > 0 && indexing === 'stopped' && documents === 0) {
        const fix = `hikidashi serve${withConfig}, which indexes while it serves; or: hikidashi search WORDS${withConfig}`
        findings.tell('index', warningResult(`${about}: nothing is indexed yet.`, fix))
      } else findings.tell('index', okResult(`${about}${behind.map(formatBehind).join('')}`))
    }
  } finally {
    await catalog.close()
  }
}

function formatBehind({ address, state, looked, of }: SearchStatusMount): string {
  const far = looked === undefined || of === undefined ? '' : ` ${looked} of ${of}`
  return `; ${address} ${state === 'comparing' ? `is being compared${far}` : state}`
}

export interface CheckContext {
  readonly local: LocalSetUp
  readonly mounts: readonly PlannedMount[]
  readonly limit: number
  readonly log: Log
  readonly secrets: Secrets
  /** Returns a position in the configuration, such as `hikidashi.json:12: mounts["docs://a"].root`. */
  positionOf(path: readonly PathStep[]): string
  /** Arguments that make another command use the same configuration. */
  readonly withConfig: string
}
