import { EventEmitter } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { WatchFile } from '../../src/providers/files/watch.ts'

/** Delay with which libuv asks FSEvents for events, in milliseconds. */
const latencyMs = 50

/**
 * Simulates `fs.watch` with the rules of FSEvents on macOS: all watches of the process share one stream, which has at most `mostPaths` paths. With
 * more, no watch gets events, and each addition raises EMFILE, as an event, at all watches. Events come late, with the path below the
 * watched directory.
 */
export function createFsEvents(root: string, mostPaths = 4096) {
  const watches = new Set<
    EventEmitter & { readonly at: string; readonly recursive: boolean; listener: Parameters<WatchFile>[2] }
  >()
  const sources = new Map<string, fs.FSWatcher>()
  const pending = new Set<string>()
  const system = { mostPaths, opened: 0, open: () => watches.size, lose: () => {}, close: () => {} }
  let timer: NodeJS.Timeout | undefined

  const deliver = () => {
    timer = undefined
    const changed = [...pending]
    pending.clear()
    if (watches.size > system.mostPaths) return
    for (const { at, recursive, listener } of watches)
      for (const file of changed) {
        const name = path.relative(at, file)
        if (name === '' || name.startsWith('..') || (!recursive && name.includes('/'))) continue
        listener('rename', name)
      }
  }

  const observe = (directory: string) => {
    if (sources.has(directory)) return
    try {
      const source = fs.watch(directory, { persistent: false }, (_, name) => {
        const file = path.join(directory, name ?? '')
        pending.add(file)
        timer ??= setTimeout(deliver, latencyMs)
        if (fs.statSync(file, { throwIfNoEntry: false })?.isDirectory()) observe(file)
      })
      source.on('error', () => {})
      sources.set(directory, source)
      for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
        // Files that were created before the directory was watched are reported too.
        if (timer !== undefined) pending.add(path.join(directory, entry.name))
        if (entry.isDirectory()) observe(path.join(directory, entry.name))
      }
    } catch {
      // The directory is gone meanwhile.
    }
  }
  observe(root)

  const watch: WatchFile = (at, { recursive }, listener) => {
    const mine = Object.assign(new EventEmitter(), { at, recursive, listener, close: () => void watches.delete(mine) })
    watches.add(mine)
    system.opened++
    if (watches.size > system.mostPaths)
      setImmediate(() => {
        const error = Object.assign(new Error('EMFILE: too many open files, watch'), { code: 'EMFILE' })
        for (const one of [...watches]) one.emit('error', error)
      })
    return mine
  }
  system.lose = () => {
    for (const { listener } of watches) listener('rename', null)
  }
  system.close = () => {
    clearTimeout(timer)
    for (const source of sources.values()) source.close()
  }
  return Object.assign(system, { watch })
}
