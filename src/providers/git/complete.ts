import { isPath } from '../../core/path.ts'
import type { Completion, CompletionRequest } from '../../core/provider.ts'
import { createRecent } from '../../core/recent.ts'
import type { Commits } from './commits.ts'
import type { Launcher } from './launch.ts'
import { type LogLine, readLog } from './log.ts'
import type { Places } from './places.ts'
import type { RefTable } from './refs.ts'

export interface Completer {
  complete(request: CompletionRequest, table: RefTable, signal: AbortSignal): Promise<Completion>
}

const maxValues = 100
/** So many of the latest commits are offered, and their authors. */
const maxRecent = 1000
const maxLog = 1024 * 1024
const nothing: Completion = { values: [], total: 0, hasMore: false }

/** Completes refs (`ref`, `from`, `to`), ids of the latest commits (`sha`), paths at a ref, and authors. */
export function createCompleter(launcher: Launcher, commits: Commits, places: Places): Completer {
  /** The latest commits, by the one that they begin at. */
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

  const refs = (value: string, table: RefTable): Completion => {
    const names = table.refs.map((ref) => table.names.shortest(ref))
    return chosen([...(table.head === undefined ? [] : ['HEAD']), ...names], value)
  }

  const paths = async (value: string, ref: string | undefined, table: RefTable, signal: AbortSignal) => {
    const directory = value.slice(0, value.lastIndexOf('/') + 1)
    const at = ref ?? 'HEAD'
    if (!isPath(directory) || at === '' || at.endsWith('/') || !isPath(at)) return nothing
    const place = await places.find(`${at}/${directory}`, table, signal)
    if (place === undefined) return nothing
    const items = await places.items(place)
    // Names of refs that go on from here are no paths at this one.
    const keys = items.keys.filter((_, index) => items.at(index)?.entry !== undefined)
    return chosen(
      keys.map((key) => `${directory}${key}`),
      value,
    )
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

/** The values that begin with what was typed, in any case. */
function chosen(values: readonly string[], typed: string): Completion {
  const wanted = typed.toLowerCase()
  const matching = values.filter((value) => value.toLowerCase().startsWith(wanted))
  return { values: matching.slice(0, maxValues), total: matching.length, hasMore: matching.length > maxValues }
}

function byFrequency(values: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a).map(([value]) => value)
}
