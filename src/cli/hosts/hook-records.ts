import { appendFile, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { stateFolder } from '../../config/state-folder.ts'
import { makeFolder } from '../../core/kit/make-folder.ts'
import { isObject, jsonIn } from '../../core/kit/object.ts'

export interface HookRecord {
  /** ISO 8601. */
  readonly time: string
  readonly host: string
  readonly folder: string
  /** The beginning of the prompt. Likely secrets in it are redacted. */
  readonly prompt: string
  /** Since the start of the process. */
  readonly ms: number
  readonly from?: 'server' | 'index'
  readonly tokens: number
  readonly score: number
  readonly silence?: string
  readonly items: readonly {
    readonly uri: string
    readonly level: string
    readonly tokens: number
    readonly why: string
  }[]
}

/** Above this size, the next record begins a new log. The old log gets the suffix `.1`. */
const maxLogBytes = 512 * 1024

const logFile = () => join(stateFolder(), 'hooks.jsonl')

/** Appends to the log. Only the user can read a new log. */
export async function writeHookRecord(record: HookRecord, scrub: (text: string) => string): Promise<void> {
  makeFolder(stateFolder(), 0o700)
  const size = await stat(logFile()).then(
    ({ size }) => size,
    () => 0,
  )
  if (size > maxLogBytes) await rename(logFile(), `${logFile()}.1`)
  await appendFile(logFile(), `${scrub(JSON.stringify(record))}\n`, { mode: 0o600 })
}

/** Returns up to `most` records of the current log, the newest first. */
export async function readHookRecords(most: number): Promise<readonly HookRecord[]> {
  const text = await readFile(logFile(), 'utf8').catch(() => '')
  return text
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const value = jsonIn(line)
      return isObject(value) && Array.isArray(value.items) ? [value as unknown as HookRecord] : []
    })
    .slice(-most)
    .reverse()
}
