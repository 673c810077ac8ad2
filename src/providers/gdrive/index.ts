import { completeFromValues } from '../../core/completion.ts'
import { isResourceError, notFound, unavailable } from '../../core/errors.ts'
import { createLruCache } from '../../core/kit/lru.ts'
import { defined, requireKeys } from '../../core/kit/object.ts'
import { metaKeys } from '../../core/meta.ts'
import { comparePaths, isPath } from '../../core/path.ts'
import type {
  Change,
  Completion,
  CompletionRequest,
  Context,
  Degradation,
  Entry,
  ListQuery,
  Principal,
  Provider,
  Template,
} from '../../core/provider.ts'
import { directoryMimeType } from '../../core/view.ts'
import { createPoller } from '../../wrap/polled.ts'
import { createDriveClient } from './client.ts'
import { isServed, listedMimeType, mayRead, titleFromName } from './model.ts'
import { completeGdriveOptions, type GdriveOptions } from './options.ts'
import { createFileReader, type DescribedFile } from './read.ts'
import { createDriveScanner } from './scan.ts'
import { createDriveSnapshotKeeper, type DriveSnapshotKeeper, type DriveState } from './snapshot.ts'
import { type DriveTree, diffDriveTrees, type FileAtPath, fileAt, indexFrom } from './tree.ts'

export type { Credentials, GdriveOptions } from './options.ts'

const template: Template = {
  template: '{+path}{?form,sheet,lines,bytes}',
  free: ['lines', 'bytes'],
  name: 'Form or sheet of a document',
  title: 'A Google document in another form, or one sheet',
  description:
    'sheet=NAME reads one sheet of a spreadsheet as CSV; _meta names the sheets. form=docx, xlsx, pptx, pdf, text, markdown, csv, png or ' +
    'svg reads a Google document in that form, if Google exports it so. lines and bytes read a part of the result.',
}

/**
 * Provider of files of Google Drive, by their ids: a path consists of the ids of the parent folders and of the file. Names are titles,
 * which need not be unique.
 *
 * Documents of Google are read as Markdown, spreadsheets as CSV sheet by sheet, presentations as text, drawings as pictures; stored files
 * are read as they are. The credentials request only the right to read.
 *
 * It sends no request before the first call. See docs/providers/gdrive.md.
 *
 * @throws ResourceError `invalid` for invalid options.
 */
export async function gdrive(options: GdriveOptions): Promise<Provider> {
  requireKeys('gdrive({ credentials })', options, { credentials: 'an object' })
  const { credentials, endpoint, timeoutMs, what, shortcuts, maxFiles, permissions, intervalMs, maxBytes, log } =
    completeGdriveOptions(options)
  const client = createDriveClient({ credentials, endpoint, timeoutMs })
  const scanner = createDriveScanner(client, shortcuts, permissions, maxFiles, log)
  const snapshot = createDriveSnapshotKeeper({ client, scanner, what, shortcuts, intervalMs, log })
  const reader = createFileReader(client, maxBytes)
  const { watch, catchUp, lookedAt, degraded, lately } = createDriveWatch(snapshot, intervalMs)
  const closing = new AbortController()

  const signalOf = ({ signal }: Pick<Context, 'signal'>): AbortSignal => {
    signal.throwIfAborted()
    if (closing.signal.aborted) throw unavailable('The provider is closed.')
    return AbortSignal.any([signal, closing.signal])
  }

  const isSeen = ({ file }: FileAtPath, principal: Principal): boolean =>
    !permissions || mayRead(principal, file.readers)

  const find = (tree: DriveTree, path: string, { principal }: Context): FileAtPath => {
    const placed = isPath(path) && !path.endsWith('/') ? fileAt(tree, path) : undefined
    if (placed === undefined || !isSeen(placed, principal)) throw notFound()
    return placed
  }

  /** Returns the current description in Drive of the file at a path: it may have been moved, shared or deleted since it was listed. */
  const describe = async (path: string, context: Context, signal: AbortSignal): Promise<DescribedFile> => {
    const { tree } = await snapshot.recent(signal)
    const placed = find(tree, path, context)
    const { id } = placed.file
    const raw = await client.file(id, scanner.fields.told, signal).catch((error: unknown) => {
      if (isResourceError(error, 'not-found')) snapshot.correct(id, undefined)
      throw error
    })
    const [now] = await scanner.convert([raw], signal)
    // Keep the facts that only the listing knows: whether the file is at the top level.
    const file = now === undefined ? undefined : { ...placed.file, ...now }
    const isHere = file !== undefined && isServed(file) && file.parent === placed.file.parent
    const isShared = !permissions || mayRead(context.principal, now?.readers)
    if (isHere && isShared) return { file, raw }
    // The feed reports this change, too, with the new folder, but later.
    snapshot.correct(id, isHere ? file : undefined)
    throw notFound()
  }

  /** Returns the entries that the principal sees. With permissions only files: a directory is visible only if a file in it is. */
  const entriesOf = (tree: DriveTree, query: ListQuery, { principal }: Context) =>
    entriesIn(tree, permissions ? { ...query, shallow: false } : query, (placed) => isSeen(placed, principal))

  const complete = async (
    { template: templateText, argument, arguments: filled }: CompletionRequest,
    context: Context,
  ): Promise<Completion | undefined> => {
    if (templateText !== template.template || argument.name === 'path') return undefined
    const signal = signalOf(context)
    const path = filled.get('path')
    const { file } = path === undefined ? {} : await describe(path, context, signal)
    if (argument.name === 'form') return completeFromValues(reader.formNames(file), argument.value)
    const names = argument.name === 'sheet' && file !== undefined ? await reader.sheetNames(file, signal) : []
    return completeFromValues(names, argument.value)
  }

  return {
    list: async function* (query, context) {
      const signal = signalOf(context)
      const { tree } = await snapshot.recent(signal)
      for (const entry of entriesOf(tree, query, context)) {
        signal.throwIfAborted()
        yield entry
      }
    },
    stat: async (path, context) => {
      const { tree } = await snapshot.recent(signalOf(context))
      if (!path.endsWith('/')) return driveFileEntry(find(tree, path, context))
      const [below] = isPath(path) ? entriesOf(tree, { prefix: path }, context) : []
      if (below === undefined) throw notFound()
      return directoryOf(tree, path)
    },
    read: async (request, context) => {
      const signal = signalOf(context)
      const one = await describe(request.path, context, signal)
      return [await reader.read(one, request, { ...context, signal })]
    },
    templates: async (context) => {
      signalOf(context)
      return [template]
    },
    complete,
    watch: (signal) => watch(AbortSignal.any([signal, closing.signal])),
    catchUp,
    lookedAt,
    renew: snapshot.expire,
    degraded,
    ...(permissions
      ? {
          sees: (principal: Principal, path: string): boolean => {
            const tree = snapshot.last?.tree
            if (tree === undefined) return true
            return [fileAt(tree, path), lately(path)].some(
              (placed) => placed !== undefined && isSeen(placed, principal),
            )
          },
        }
      : {}),
    close: async () => {
      closing.abort()
      snapshot.close()
      client.close()
      reader.close()
    },
  }
}

function* entriesIn(
  tree: DriveTree,
  { prefix = '', after, shallow }: ListQuery,
  isSeen: (placed: FileAtPath) => boolean,
) {
  const first = indexFrom(tree, prefix)
  let at = after === undefined ? first : Math.max(first, indexFrom(tree, after, true))
  for (let placed = tree.entries[at]; placed?.path.startsWith(prefix); placed = tree.entries[at]) {
    const slash = placed.path.indexOf('/', prefix.length)
    if (shallow !== true || slash === -1) {
      at++
      if (isSeen(placed)) yield driveFileEntry(placed)
      continue
    }
    const directory = placed.path.slice(0, slash + 1)
    // The first path after everything in the directory.
    at = indexFrom(tree, `${directory.slice(0, -1)}0`)
    if (after === undefined || comparePaths(directory, after) > 0) yield directoryOf(tree, directory)
  }
}

function driveFileEntry({ path, name, file }: FileAtPath): Entry {
  const { size, modified, version, link, revision } = file
  const title = titleFromName(name)
  const origin = defined({ link, revision })
  return {
    path,
    ...defined({ title }),
    mimeType: listedMimeType(file),
    ...defined({ size, modified }),
    version,
    ...(Object.keys(origin).length === 0 ? {} : { meta: { [metaKeys.drive]: origin } }),
  }
}

function directoryOf({ titles }: DriveTree, path: string): Entry {
  const title = titleFromName(titles.get(path) ?? '')
  return { path, ...defined({ title }), mimeType: directoryMimeType }
}

/** Maximum delay until listeners are notified of a change, in milliseconds. */
const notifyDelayMs = 2000

function createDriveWatch(snapshot: DriveSnapshotKeeper, intervalMs: number) {
  /** The former entries of changed paths, kept until listeners are notified: those who could see an entry also learn of its removal. */
  const former = createLruCache<{ readonly placed: FileAtPath; readonly until: number }>(10_000)

  const changesOf = function* (before: DriveState, now: DriveState): Generator<Change> {
    // The changes during a loss of the feed are unknown, so any entry may have changed.
    if (now.losses !== before.losses) return yield {}
    if (now.tree === before.tree) return
    for (const path of diffDriveTrees(before.tree, now.tree)) {
      const placed = fileAt(before.tree, path)
      if (placed !== undefined) former.set(path, { placed, until: performance.now() + notifyDelayMs })
      yield { path, listed: true }
    }
  }
  const looking = createPoller({ intervalMs, look: (signal) => snapshot.fresh(signal), changesOf })

  return {
    watch: looking.watch,
    catchUp: looking.catchUp,
    lookedAt: () => looking.lookedAt,
    degraded: (): Degradation | undefined => (looking.away ? 'unavailable' : undefined),
    /** Returns the entry that was at a path until a moment ago, if it has just changed. */
    lately: (path: string): FileAtPath | undefined => {
      const previous = former.get(path)
      return previous !== undefined && performance.now() < previous.until ? previous.placed : undefined
    },
  }
}
