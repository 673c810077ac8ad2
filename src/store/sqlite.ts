import { isResourceError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Engine, Remote } from './engine.ts'
import { createNews } from './news.ts'
import type { SqliteOperations } from './sqlite/operations.ts'
import type { Changed } from './sqlite/rows.ts'
import { createThread } from './sqlite/thread.ts'

/** Interval at which the file is checked for writes of other processes while there is a listener, in milliseconds. */
const lookMs = 150

/** The operations that change a collection. */
const writing: ReadonlySet<string> = new Set(['put', 'delete', 'evict', 'dropLease'])

/** Opens a store in a file. Everything that waits for the disk does so in a thread. */
export async function openSqlite({ file }: { readonly file: string }, log: Log): Promise<Engine> {
  const thread = createThread({ file, warn: (message) => log('warn', message) })
  const engine = engineOver(thread)
  try {
    await thread.ask('open', [])
  } catch (error) {
    if (!isResourceError(error, 'unavailable')) {
      await engine.close()
      throw error
    }
    log('warn', error.message, { file })
  }
  return engine
}

function engineOver(thread: ReturnType<typeof createThread>): Engine {
  let looked: () => void = () => {}
  const ask = <Name extends keyof SqliteOperations>(name: Name) =>
    ((...values: readonly unknown[]) => {
      const answer = thread.ask(name, values)
      if (writing.has(name)) answer.then(looked, () => {})
      return answer
    }) as Remote<SqliteOperations>[Name]

  const watching = createWatching(ask('changes'))
  looked = watching.look
  return {
    get: ask('get'),
    put: ask('put'),
    delete: ask('delete'),
    list: ask('list'),
    similar: ask('similar'),
    size: ask('size'),
    evict: ask('evict'),
    takeLease: ask('takeLease'),
    renewLease: ask('renewLease'),
    dropLease: ask('dropLease'),
    textsPut: ask('textsPut'),
    textsRemove: ask('textsRemove'),
    textsList: ask('textsList'),
    textsEntries: ask('textsEntries'),
    textsIds: ask('textsIds'),
    textsMimeTypes: ask('textsMimeTypes'),
    textsCounts: ask('textsCounts'),
    textsFind: ask('textsFind'),
    textsWeigh: ask('textsWeigh'),
    textsRead: ask('textsRead'),
    textsSize: ask('textsSize'),
    textsUnembedded: ask('textsUnembedded'),
    textsEmbed: ask('textsEmbed'),
    textsVectors: ask('textsVectors'),
    watch: watching.watch,
    close: async () => {
      watching.close()
      await thread.close()
    },
  }
}

/** Polls for changes of other processes while a listener exists, and reports changes of this process at once. */
function createWatching(changes: Remote<SqliteOperations>['changes']) {
  /** The known revision of each collection. An unknown collection counts as changed entirely. */
  const known = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let looking = false
  let again = false

  const news = createNews(() => {
    const wanted = new Set(news.collections)
    for (const name of known.keys()) if (!wanted.has(name)) known.delete(name)
    if (wanted.size === 0) {
      clearTimeout(timer)
      timer = undefined
    } else timer ??= setTimeout(tick, lookMs)
  })

  const tick = () => {
    look()
    timer = setTimeout(tick, lookMs)
  }
  const take = ({ collection, revision, keys }: Changed) => {
    known.set(collection, revision)
    news.tell(collection, keys)
  }
  const lookOnce = async () => {
    const wanted = Object.fromEntries(news.collections.map((name) => [name, known.get(name) ?? -1]))
    try {
      for (const changed of await changes(wanted)) take(changed)
    } catch {
      // The next check reports all changes in between.
    }
  }
  const lookUntilDone = async () => {
    while (again) {
      again = false
      await lookOnce()
    }
    looking = false
  }
  /** Checks now; during a check, once more after it. */
  const look = () => {
    if (news.collections.length === 0) return
    again = true
    if (looking) return
    looking = true
    void lookUntilDone()
  }

  return {
    look,
    watch: async (collection: string, signal: AbortSignal) => {
      const heard = news.listen(collection, signal)
      if (!known.has(collection)) {
        try {
          const [now] = await changes({ [collection]: -1 })
          // A concurrent listener may have set a later revision, which must not be overwritten.
          if (!known.has(collection)) known.set(collection, now?.revision ?? 0)
        } catch {
          // Once the file answers again, everything in it counts as changed.
        }
      }
      return heard
    },
    close: () => news.close(),
  }
}
