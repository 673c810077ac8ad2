import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { redactPhrase } from '../../secrets/find.ts'
import { misused } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'
import { escapeLines } from '../terminal/text.ts'
import { backupOf, type HostFile, readHostFile } from './files.ts'
import { formatOf } from './format.ts'
import type { Entry, Format, Found, Host, Place, Scope } from './types.ts'
import { isObject, type JsonObject, valueAt } from './values.ts'

/** A host's file in a scope, read. */
export interface Opened {
  readonly host: Host
  readonly scope: Scope
  readonly before: HostFile
  readonly format: Format
  /** Its parsed settings. */
  readonly settings: unknown
}

/** Opens the file that a host reads in a scope: the first existing one, else the one that the host would create. */
export function fileOf(host: Host, scope: Scope, place: Place): string {
  const names = host.files[scope]?.(place) ?? []
  const file = names.find((name) => existsSync(name)) ?? names[0]
  if (file !== undefined) return file
  throw misused(
    `${host.title} has no settings for a ${scope}. It has them for a ${Object.keys(host.files).join(', ')}.`,
  )
}

/** @throws CommandError for a file that cannot be read or parsed. */
export async function openHostFile(host: Host, scope: Scope, place: Place): Promise<Opened> {
  const before = await readHostFile(fileOf(host, scope, place))
  const format = formatOf(host, before.file)
  return { host, scope, before, format, settings: format.parse(before.text ?? '') }
}

/** The names and entries of all servers in a file. */
export function serversOf({ host, settings }: Opened): Readonly<Record<string, JsonObject>> {
  const servers = valueAt(settings, host.serversAt(settings))
  if (!isObject(servers)) return {}
  return Object.fromEntries(Object.entries(servers).filter(([, value]) => isObject(value))) as Record<
    string,
    JsonObject
  >
}

/** Whether an entry starts hikidashi, judged by the name of the program or its file; for a URL, by the name of the entry. */
export function isOurs(name: string, { command }: Found): boolean {
  if (command === undefined) return /hikidashi/i.test(name)
  return command.some((word, i) => {
    if (/(?:^|[\\/])hikidashi(?:\.cmd|\.exe)?(?:@[\w.-]+)?$/.test(word)) return command[i + 1] === 'serve'
    return /[\\/]cli[\\/]main\.js$/.test(word) && command[i + 1] === 'serve'
  })
}

/** Returns the text with an entry; unchanged if it has the same entry. */
export function withEntry({ host, before, format, settings }: Opened, name: string, entry: Entry): string {
  const path = [...host.serversAt(settings), name]
  const text = before.text ?? ''
  const isThere = isDeepStrictEqual({ ...(valueAt(settings, path) as object | undefined) }, { ...entry.value })
  const set = isThere ? text : format.set(text, path, entry.value)
  return (entry.inputs ?? []).reduce((whole, input) => {
    const list = valueAt(format.parse(whole), ['inputs'])
    const inputs = Array.isArray(list) ? list : []
    const at = inputs.findIndex((other: unknown) => isObject(other) && other.id === input.id)
    if (at !== -1) return whole
    return list === undefined
      ? format.set(whole, ['inputs'], [input])
      : format.set(whole, ['inputs', inputs.length], input)
  }, set)
}

/**
 * Returns the text without an entry, and without the inputs that only this entry uses. If the file did not change otherwise since the
 * entry was added, the result is the former text, to the byte; undefined if there was no file.
 */
export async function withoutEntry(opened: Opened, name: string): Promise<string | undefined> {
  const { host, before, format, settings } = opened
  const { text = '' } = before
  const value = serversOf(opened)[name]
  const path = [...host.serversAt(settings), name]
  if (value === undefined) return text
  const inputs = inputsFor(settings, name, value)
  const undone = await undo(opened, name, { value, inputs: inputs.map(([, input]) => input) })
  if (undone !== undefined) return undone.text
  const rest = format.remove(text, path)
  return inputs.reduceRight((whole, [at]) => format.remove(whole, ['inputs', at]), rest)
}

/** Returns the inputs that only this entry uses, each with its index in the list. */
function inputsFor(settings: unknown, name: string, value: JsonObject): readonly [number, JsonObject][] {
  const list = valueAt(settings, ['inputs'])
  const [whole, own] = [JSON.stringify(settings), JSON.stringify(value)]
  const uses = (text: string, id: string) => text.split(`\${input:${id}}`).length - 1
  return (Array.isArray(list) ? list : []).flatMap((input: unknown, at): [number, JsonObject][] => {
    if (!isObject(input) || input.id !== `${name}-token`) return []
    return uses(own, input.id) === uses(whole, input.id) ? [[at, input as JsonObject]] : []
  })
}

/** Returns the former text of the file, if adding the entry to it again gives the current text. */
async function undo(opened: Opened, name: string, entry: Entry): Promise<{ readonly text?: string } | undefined> {
  const { format, before } = opened
  const backup = await readHostFile(backupOf(before)).catch(() => undefined)
  const candidates = backup?.text === undefined ? [undefined] : [backup.text, undefined]
  for (const text of candidates) {
    const made = await remade({ ...opened, before: { ...before, text } }, format, name, entry)
    if (made === before.text) return text === undefined ? {} : { text }
  }
  return undefined
}

async function remade(opened: Opened, format: Format, name: string, entry: Entry): Promise<string | undefined> {
  try {
    const settings = format.parse(opened.before.text ?? '')
    const isThere = valueAt(settings, [...opened.host.serversAt(settings), name]) !== undefined
    return isThere ? undefined : withEntry({ ...opened, settings }, name, entry)
  } catch {
    return undefined
  }
}

/** Number of context lines around a difference. */
const context = 3

/**
 * Returns the difference of two texts as a unified diff with one hunk, as `patch` reads it. Equal texts have none.
 *
 * @param before Undefined if there was no file.
 */
export function unifiedDiff(file: string, before: string | undefined, after: string | undefined): string {
  if (before === after) return ''
  const [old, fresh] = [linesOf(before ?? ''), linesOf(after ?? '')]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const from = Math.max(0, start - context)
  const rest = Math.max(0, end - context)
  const taken = { old: old.length - from - rest, fresh: fresh.length - from - rest }
  const lines = [
    ...old.slice(from, start).map((line) => ` ${line}`),
    ...old.slice(start, old.length - end).map((line) => `-${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+${line}`),
    ...old.slice(old.length - end, old.length - rest).map((line) => ` ${line}`),
  ].map((line) => (line.endsWith('\n') ? line : `${line}\n\\ No newline at end of file\n`))
  const names = [before === undefined ? '/dev/null' : file, after === undefined ? '/dev/null' : file]
  const header = `--- ${names[0]}\n+++ ${names[1]}\n@@ -${rangeOf(from, taken.old)} +${rangeOf(from, taken.fresh)} @@\n`
  return header + lines.join('')
}

/** The lines of a text, each with its end. */
const linesOf = (text: string) => (text === '' ? [] : text.split(/(?<=\n)/))

const rangeOf = (from: number, count: number) => `${count === 0 ? from : from + 1},${count}`

/**
 * Prints a diff. Possible secrets in the surrounding lines are hidden, since diffs are passed on. Control characters are escaped for
 * terminals.
 */
export async function showDiff(diff: string, { out }: Pick<Io, 'out'>): Promise<void> {
  const clean = diff.replace(/^[ -](?!-- ).*$/gm, redactPhrase)
  await out.write(out.isTerminal ? escapeLines(clean) : clean)
}
