import { openLeftOutExplainer, openMount } from '../../config/open-mount.ts'
import { mountSource, type PlannedMount } from '../../config/plan.ts'
import { createCatalog, type Mount } from '../../core/catalog.ts'
import { isResourceError, unavailable } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { Log } from '../../core/log.ts'
import type { Principal } from '../../core/provider.ts'
import { parseAddress } from '../../core/uri.ts'
import type { LeftOutCounts } from '../../providers/files/index.ts'
import type { MountSettings } from '../../providers/source.ts'
import { checkProvider, type Problem, type Report } from '../../testing/index.ts'
import { isTextOfUnknownEncoding } from '../../text/encoding/detect.ts'
import { findRuleMisses, hasRuleGlobs, type RuleMiss, type SeenPath } from './rule-globs.ts'

const maxNamesCounted = 100_000

export interface MountReport {
  readonly address: string
  readonly provider: string
  readonly failure?: string
  readonly isAway?: true
  readonly problems: readonly Problem[]
  readonly examined: number
  readonly complete: boolean
  readonly milliseconds: number
  /** For a mount of a folder: the number of omitted files, by reason. */
  readonly leftOut?: LeftOutCounts
  /** Paths of examined texts with an unknown encoding. They are served as bytes. */
  readonly unknownEncodings?: readonly string[]
  readonly ruleMisses?: readonly RuleMiss[]
}

/**
 * Opens a mount, and tests up to `limit` entries against the contract of providers. @param keep Receives the mount,
 * which stays open.
 */
export async function checkMount(
  planned: PlannedMount,
  limit: number,
  settings: MountSettings,
  keep: (mount: Mount) => void,
): Promise<MountReport> {
  const start = performance.now()
  const report = (rest: Partial<MountReport>): MountReport => ({
    address: planned.address,
    provider: mountSource(planned.config).name,
    problems: [],
    examined: 0,
    complete: false,
    ...rest,
    milliseconds: Math.round(performance.now() - start),
  })
  try {
    const mount = await openMount(planned, settings)
    keep(mount)
    const { problems, ...rest } = await checkTwice(mount, limit)
    if (problems.length > 0) await throwUnavailable(mount)
    const { leftOut, names = await listedNames(planned, mount, limit) } = await walkFolder(planned)
    // Rules may also match the names of prompts and tools, which are not among these names.
    const isAll = names.complete && mount.provider.prompts === undefined && mount.provider.tools === undefined
    const misses = findRuleMisses(planned, names.seen, isAll)
    const unknownEncodings = await textsOfUnknownEncoding(planned, mount, limit)
    return report({
      ...rest,
      ...defined({ leftOut, unknownEncodings, ruleMisses: misses.length === 0 ? undefined : misses }),
      problems,
    })
  } catch (error) {
    if (!isResourceError(error)) throw error
    return report({ failure: error.message, ...(error.kind === 'unavailable' ? { isAway: true } : {}) })
  }
}

/**
 * Returns the addresses of mounts that hide names but serve hard links: a file hidden under one name is served under
 * its others.
 */
export function mountsExposingHardLinks(mounts: readonly PlannedMount[]): readonly string[] {
  return mounts.flatMap(({ address, config }) => {
    if (!('hardlinks' in config) || config.hardlinks !== true) return []
    const { access = [], exclude = [], include } = config as { readonly exclude?: readonly string[] } & typeof config
    const hides = access.some(({ match }) => match !== undefined)
    return hides || exclude.length > 0 || include !== undefined ? [address] : []
  })
}

const encodingSampleBytes = 64 * 1024

async function textsOfUnknownEncoding(
  { config }: PlannedMount,
  { provider }: Mount,
  limit: number,
): Promise<readonly string[] | undefined> {
  if (mountSource(config).isDecoded === undefined) return undefined
  const context = { principal: { id: 'check', roles: [] }, signal: new AbortController().signal }
  const paths: string[] = []
  let lookCount = 0
  for await (const { path } of provider.list({}, context)) {
    if (lookCount++ >= limit) break
    const request = { path, params: new Map<string, string>(), range: { start: 0, end: encodingSampleBytes } }
    const [content] = await provider.read(request, context).catch(() => [])
    if (content !== undefined && 'bytes' in content && isTextOfUnknownEncoding(content.bytes, content.mimeType))
      paths.push(path)
  }
  return paths
}

interface MountNames {
  readonly seen: readonly SeenPath[]
  readonly complete: boolean
}

async function walkFolder(planned: PlannedMount): Promise<{ leftOut?: LeftOutCounts; names?: MountNames }> {
  const explainer = await openLeftOutExplainer(planned)
  if (explainer === undefined) return {}
  const seenPaths: SeenPath[] = []
  try {
    const see = (path: string, isWalked: boolean) => void seenPaths.push({ path, isWalked })
    const leftOut = await explainer.count(maxNamesCounted, new AbortController().signal, see)
    return { leftOut, names: { seen: seenPaths, complete: leftOut.complete } }
  } finally {
    explainer.close()
  }
}

/**
 * Returns up to `limit` listed paths; none if the rules of the mount have no globs. Paths of templates are not listed.
 */
async function listedNames(planned: PlannedMount, { provider }: Mount, limit: number): Promise<MountNames> {
  if (!hasRuleGlobs(planned)) return { seen: [], complete: false }
  const context = { principal: { id: 'check', roles: [] }, signal: new AbortController().signal }
  const seenPaths: SeenPath[] = []
  for await (const { path } of provider.list({}, context)) {
    if (seenPaths.length >= limit) return { seen: seenPaths, complete: false }
    seenPaths.push({ path, isWalked: true })
  }
  const templates = (await provider.templates?.(context)) ?? []
  return { seen: seenPaths, complete: templates.length === 0 }
}

/** @throws ResourceError `unavailable` if the source does not answer: its provider then breaks no contract */
async function throwUnavailable({ provider }: Mount): Promise<void> {
  const context = { principal: { id: 'check', roles: [] }, signal: new AbortController().signal }
  try {
    for await (const _ of provider.list({}, context)) break
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) return
    // An open circuit breaker hides the reason.
    throw unavailable(provider.failing?.() ?? error.message)
  }
}

/** A source that changes during the check may seem to contradict itself, so problems are checked again. */
async function checkTwice({ provider }: Mount, limit: number): Promise<Report> {
  const report = await checkProvider(provider, {}, { limit })
  return report.problems.length === 0 ? report : checkProvider(provider, {}, { limit })
}

/** Returns the addresses of mounts of which the principal sees nothing. Closes the mounts. */
export async function mountsHiddenFrom(
  principal: Principal,
  mounts: readonly Mount[],
  log: Log,
): Promise<readonly string[]> {
  const catalog = createCatalog({ mounts, log })
  try {
    const visible = new Set((await catalog.view(principal).mounts()).map(({ uri }) => uri))
    return mounts.map(({ address }) => parseAddress(address).text).filter((address) => !visible.has(address))
  } finally {
    await catalog.close()
  }
}

export function hasProblem({ failure, problems }: MountReport): boolean {
  return failure !== undefined || problems.length > 0
}
