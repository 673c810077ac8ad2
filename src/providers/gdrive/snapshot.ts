import { isResourceError, unavailable } from '../../core/errors.ts'
import { singleFlight } from '../../core/kit/abort.ts'
import type { Log } from '../../core/log.ts'
import { untilAbort } from '../files/place.ts'
import { type Corpus, type DriveClient, ExpiredChangesError } from './client.ts'
import { type DriveFile, folderType, type RawFile, shortcutType } from './model.ts'
import type { ServedPart, ShortcutPolicy } from './options.ts'
import { type DriveFiles, type DriveRoots, type DriveScanner, findDriveRoots } from './scan.ts'
import { buildTree, type DriveTree } from './tree.ts'

interface FeedPosition {
  readonly corpus: Corpus
  readonly token: string
}

export interface DriveState {
  readonly files: ReadonlyMap<string, DriveFile>
  readonly tree: DriveTree
  readonly scope: DriveRoots
  readonly positions: readonly FeedPosition[]
  /** Time of the last check, by `performance.now()`. */
  readonly at: number
  /** Time of the last full listing, by `performance.now()`. */
  readonly listedAt: number
  /** Number of times that the feed was lost. The changes at such a time are unknown. */
  readonly losses: number
}

interface SnapshotParts {
  readonly client: DriveClient
  readonly scanner: DriveScanner
  readonly what: ServedPart
  readonly shortcuts: ShortcutPolicy
  /** Maximum age of a snapshot that answers are taken from, in milliseconds. */
  readonly intervalMs: number
  readonly log: Log
}

/** Interval of full listings, in milliseconds, independent of the feed. */
const listIntervalMs = 12 * 3_600_000

export type DriveSnapshotKeeper = ReturnType<typeof createDriveSnapshotKeeper>

function createFeed(
  { client, scanner, what, shortcuts }: Pick<SnapshotParts, 'client' | 'scanner' | 'what' | 'shortcuts'>,
  signal: AbortSignal,
) {
  const stateOf = async (
    files: ReadonlyMap<string, DriveFile>,
    scope: DriveRoots,
    rest: Pick<DriveState, 'positions' | 'listedAt' | 'losses'>,
  ): Promise<DriveState> => {
    const at = performance.now()
    const tree = await buildTree(files, scope, shortcuts)
    return { files: keepReachableFiles(files, scope, tree), tree, scope, at, ...rest }
  }

  /** Applies the changes since a state. Throws {@link ExpiredChangesError} if everything has to be listed again. */
  const advance = async (state: DriveState): Promise<DriveState> => {
    const at = performance.now()
    const changes = new Map<string, RawFile | undefined>()
    let drives = false
    const positions: FeedPosition[] = []
    for (const { corpus, token } of state.positions) {
      let from = token
      for (let page = await client.changes(corpus, from, scanner.fields.listed, signal); ; ) {
        for (const { changeType, fileId, removed, file } of page.items) {
          if (changeType === 'drive') drives = true
          else if (typeof fileId === 'string') changes.set(fileId, removed === true ? undefined : (file ?? undefined))
        }
        from = page.next ?? page.from ?? from
        if (page.next === undefined) break
        page = await client.changes(corpus, from, scanner.fields.listed, signal)
      }
      positions.push({ corpus, token: from })
    }
    // Only a full listing shows which drives exist.
    if (drives && what.kind === 'drives') throw new ExpiredChangesError()
    const files = new Map(state.files)
    const { listedAt, losses } = state
    if (!(await apply(files, state, changes))) return { ...state, at, positions }
    return { ...(await stateOf(files, state.scope, { positions, listedAt, losses })), at }
  }

  /** Applies changes to `files`. Returns whether any of them makes a difference. */
  const apply = async (files: DriveFiles, state: DriveState, changes: ReadonlyMap<string, RawFile | undefined>) => {
    const { folders } = state.tree
    let differs = false
    const came: { readonly id: string; readonly corpus: Corpus }[] = []
    for (const [id, raw] of changes) if (raw === undefined && files.delete(id)) differs = true
    const raws = [...changes.values()].filter((raw) => raw !== undefined)
    for (const file of await scanner.convert(raws, signal)) {
      const driveFile = files.get(file.id)
      const isInside = folders.has(file.parent ?? '') || (state.scope.shared && file.top === true)
      if (driveFile === undefined && !isInside) continue
      differs = true
      // The target of a shortcut must not move to the top level.
      files.set(file.id, driveFile?.top === false ? { ...file, top: false } : file)
      // The feed does not report the contents of a folder that moves in as a whole.
      if (file.type === folderType && !file.trashed && !folders.has(file.id))
        came.push({ id: file.id, corpus: corpusOf(file, state) })
    }
    await scanner.below(files, came, signal)
    if (differs) await scanner.targets(files, signal)
    return differs
  }

  return { stateOf, advance }
}

/**
 * Keeps a recent snapshot of the served part of Drive, because Drive cannot list files in the order of their paths. It lists everything at
 * the first call, then follows the feed of changes, and lists again after {@link listIntervalMs}. An update continues after the callers
 * that wait for it abort.
 */
export function createDriveSnapshotKeeper({ client, scanner, what, shortcuts, intervalMs, log }: SnapshotParts) {
  const closing = new AbortController()
  const { signal } = closing
  const { stateOf, advance } = createFeed({ client, scanner, what, shortcuts }, signal)
  let current: DriveState | undefined
  /** Corrections found during a poll of the feed, which may not contain them yet. */
  let corrections: (readonly [id: string, file: DriveFile | undefined])[] = []

  const listing = singleFlight(async (): Promise<DriveState> => {
    const scope = await findDriveRoots(client, what, signal)
    const positions = await Promise.all(
      scope.corpora.map(async (corpus) => ({ corpus, token: await client.startToken(corpus, signal) })),
    )
    const files = await scanner.all(scope, signal)
    const losses = current?.losses ?? 0
    const driveState = await stateOf(files, scope, { positions, listedAt: performance.now(), losses })
    const state = await advance(driveState).catch((error: unknown) => {
      throw error instanceof ExpiredChangesError ? unavailable('Drive changed while it was listed. Try again.') : error
    })
    log('info', 'Drive was listed', { files: state.tree.entries.length })
    current = state
    return state
  })

  const following = singleFlight(async (state: DriveState): Promise<DriveState> => {
    corrections = []
    try {
      const advanced = await advance(state)
      const next = corrections.reduce(corrected, advanced)
      current = next
      return next
    } catch (error) {
      if (!(error instanceof ExpiredChangesError)) throw error
      log('warn', 'the feed of changes was lost: everything is listed again')
      const next = await listing.run()
      current = { ...next, losses: state.losses + 1 }
      return current
    }
  })

  /** States that were requested before this time are not used any more. */
  let expiredBefore = Number.NEGATIVE_INFINITY

  const renew = (): Promise<DriveState> => {
    if (current === undefined) return listing.run()
    if (performance.now() - current.listedAt > listIntervalMs && listing.running === undefined)
      listing.run().catch((error: unknown) => {
        if (isResourceError(error)) log('warn', 'Drive could not be listed again', { error })
      })
    return following.run(current)
  }

  /** Asks Drive for changes after a time. An update that began before it may lack the latest changes. */
  const renewedSince = async (time: number, caller: AbortSignal): Promise<DriveState> => {
    const renewed = await untilAbort(renew(), caller)
    return renewed.at > time ? renewed : untilAbort(renew(), caller)
  }

  return {
    /** Returns the last state, or a renewed one if it is older than the interval. */
    recent: async (caller: AbortSignal): Promise<DriveState> => {
      const isRecent = ({ at }: DriveState) => at > expiredBefore && performance.now() - at < intervalMs
      return current !== undefined && isRecent(current) ? current : renewedSince(expiredBefore, caller)
    },
    /** Makes the next call of `recent` ask Drive for changes. */
    expire: (): void => {
      expiredBefore = performance.now()
    },
    /** Asks Drive for changes, also if the last state is recent. */
    fresh: (caller: AbortSignal): Promise<DriveState> => renewedSince(performance.now(), caller),
    /** Applies a change of a file before the feed reports it. Undefined: the file is no longer served at its path. */
    correct: (id: string, file: DriveFile | undefined): void => {
      if (following.running !== undefined) corrections.push([id, file])
      if (current !== undefined) current = corrected(current, [id, file])
    },
    get last(): DriveState | undefined {
      return current
    },
    close: () => closing.abort(),
  }
}

function corrected(state: DriveState, [id, file]: readonly [id: string, file: DriveFile | undefined]): DriveState {
  const files = new Map(state.files)
  if (file === undefined) files.delete(id)
  else files.set(id, file)
  const entries = state.tree.entries.flatMap((placed) => {
    if (placed.file.id !== id) return [placed]
    return file === undefined ? [] : [{ ...placed, file }]
  })
  return { ...state, files, tree: { ...state.tree, entries } }
}

function corpusOf({ parent }: DriveFile, { scope, tree }: DriveState): Corpus {
  const path = tree.folders.get(parent ?? '') ?? ''
  return scope.anchors.find((anchor) => path.startsWith(anchor.path))?.corpus ?? {}
}

/** Returns the files that have a path, or may get one by a shortcut. */
function keepReachableFiles(
  files: ReadonlyMap<string, DriveFile>,
  { shared }: DriveRoots,
  { folders }: DriveTree,
): DriveFiles {
  const targets = new Set<string>()
  const remainingFiles: DriveFiles = new Map()
  for (const [id, file] of files) {
    const isPlaced = folders.has(id) || folders.has(file.parent ?? '') || (shared && file.top === true)
    if (!isPlaced) continue
    remainingFiles.set(id, file)
    if (file.type === shortcutType && file.target !== undefined) targets.add(file.target)
  }
  for (const id of targets) {
    const file = files.get(id)
    if (file !== undefined) remainingFiles.set(id, file)
  }
  return remainingFiles
}
