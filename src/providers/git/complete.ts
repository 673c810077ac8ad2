import { createRecent } from '../../core/kit/lru.ts'
import { isPath } from '../../core/path.ts'
import type { Completion, CompletionRequest } from '../../core/provider.ts'
import type { Commits } from './commits.ts'
import type { Launcher } from './launch.ts'
import { type LogLine, readLog } from './log.ts'
import type { Places } from './places.ts'
import { nameAt } from './ref-list.ts'
import type { RefTable } from './refs.ts'
import { createSlices } from './slices.ts'

interface Completer {
  complete(request: CompletionRequest, table: RefTable, signal: AbortSignal): Promise<Completion>
}

const maxValues = 100
/** Maximum number of latest commits to propose, with their authors. */
const maxRecent = 1000
const maxLog = 1024 * 1024
const nothing: Completion = { values: [], total: 0, hasMore: false }

/** Creates the completer of refs (`ref`, `from`, `to`), ids of the latest commits (`sha`), paths at a ref, and authors. */
export function createCompleter(
  launcher: Launcher,
  commits: Commits,
  places: Places,
  heard?: (entries: number) => void,
): Completer {
  /** The latest commits, by the commit that they begin at. */
  const logs = createRecent<readonly LogLine[]>(16)

  const recent = async (ref: string | undefined, table: RefTable, signal: AbortSignal): Promise<readonly LogLine[]> => {
    const found = await commits.named(ref ?? 'HEAD', table, signal)
    if (found === undefined) return []
    const known = logs.get(found.commit)
    if (known !== undefined) return known
    const { lines } = await readLog(launcher, found.commit, { limit: maxRecent }, maxLog, signal)
    logs.set(found.commit, lines)
    return lines
  }

  const refs = async (value: string, table: RefTable): Promise<Completion> => {
    const slices = createSlices(heard)
    const offered = offers(value)
    if (table.head !== undefined) offered.take('HEAD')
    for (let i = 0; i < table.refs.length; i++) {
      offered.take(table.names.shortest(nameAt(table.refs, i)))
      if (slices.due()) await slices.rest()
    }
    return offered.completion()
  }

  const paths = async (value: string, ref: string | undefined, table: RefTable, signal: AbortSignal) => {
    const directory = value.slice(0, value.lastIndexOf('/') + 1)
    const at = ref ?? 'HEAD'
    if (!isPath(directory) || at === '' || at.endsWith('/') || !isPath(at)) return nothing
    const place = await places.find(`${at}/${directory}`, table, signal)
    if (place === undefined) return nothing
    const items = await places.items(place)
    // Longer names of refs are no paths at this one.
    const slices = createSlices(heard)
    const offered = offers(value)
    for (let i = 0; i < items.length; i++) {
      const item = items.at(i)
      if (item?.entry !== undefined) offered.take(`${directory}${item.key}`)
      if (slices.due()) await slices.rest()
    }
    return offered.completion()
  }

  return {
    complete: async ({ argument, arguments: filled }, table, signal) => {
      const { name, value } = argument
      const ref = filled.get('ref') ?? filled.get('to')
      switch (name) {
        case 'ref':
        case 'from':
        case 'to':
          return refs(value, table)
        case 'path':
          return paths(value, ref, table, signal)
        case 'sha': {
          const lines = await recent(undefined, table, signal)
          return chosen(
            lines.map(({ oid }) => oid),
            value,
          )
        }
        case 'author': {
          const lines = await recent(ref, table, signal)
          return chosen(byFrequency(lines.map(({ author }) => author)), value)
        }
        default:
          return nothing
      }
    },
  }
}

/** Collects the values that begin with the typed text, in any letter case. */
function offers(text: string): { take(value: string): void; completion(): Completion } {
  const typed = text.toLowerCase()
  const values: string[] = []
  let total = 0
  return {
    take: (value) => {
      if (!value.toLowerCase().startsWith(typed)) return
      total++
      if (values.length < maxValues) values.push(value)
    },
    completion: () => ({ values, total, hasMore: total > values.length }),
  }
}

/** Returns the values that begin with the typed text. */
function chosen(values: readonly string[], typed: string): Completion {
  const offered = offers(typed)
  for (const value of values) offered.take(value)
  return offered.completion()
}

function byFrequency(values: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([value]) => value)
}
