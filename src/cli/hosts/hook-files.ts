import { defined } from '../../core/kit/object.ts'
import { joinCommand, ownCommand } from '../operations/command-line.ts'
import { commandFailure, usageError } from '../terminal/exit.ts'
import { type OpenedHostFile, openHostFile } from './change.ts'
import { promptHooks } from './hooks.ts'
import { type Host, type HostScope, type JsonObject, type Machine, valueAt } from './types.ts'

/** How long a host waits for the hook. The hook itself gives up earlier. */
const timeoutMs = 5000

export interface OpenedHook {
  readonly opened: OpenedHostFile
  readonly event: string
  readonly entry: JsonObject | string
  /** The index of our entry among the hooks of the event, 0 for a plugin; -1 if the file does not have it. */
  readonly index: number
  readonly isPlugin: boolean
  readonly fileVersion?: number
}

/** @throws CommandError for a host without a hook that adds a context to a prompt, or an unreadable file */
export async function openHook(host: Host, scope: HostScope, machine: Machine): Promise<OpenedHook> {
  const hook = promptHooks[host.id]
  if (hook === undefined)
    throw usageError(
      `${host.title} has no hook that adds a context to a prompt. These hosts have one: ${Object.keys(promptHooks).join(', ')}.`,
    )
  const { event, files = host.files, unitMs = 1, fileVersion, plugin } = hook
  const words = ownCommand(['pack', '--hook', host.id])
  if (plugin !== undefined) return openPlugin({ ...host, files }, event, plugin(words), scope, machine)
  const file = await openHostFile({ ...host, files, format: 'json' }, scope, machine)
  const command = joinCommand(words)
  const list = valueAt(file.settings, ['hooks', event])
  const index = Array.isArray(list)
    ? list.findIndex((one) => JSON.stringify(one).includes(`pack --hook ${host.id}`))
    : -1
  const timeout = timeoutMs / unitMs
  const entry = fileVersion === undefined ? { hooks: [{ type: 'command', command, timeout }] } : { command, timeout }
  return { opened: file, event, index, entry, isPlugin: false, ...defined({ fileVersion }) }
}

const wholeText = ['text']

async function openPlugin(
  host: Host,
  event: string,
  entry: string,
  scope: HostScope,
  machine: Machine,
): Promise<OpenedHook> {
  const hostFile = await openHostFile({ ...host, format: 'text' }, scope, machine)
  const { text = '', file } = hostFile.before
  const isOurs = text.includes(`"pack","--hook","${host.id}"`)
  if (!isOurs && text.trim() !== '')
    throw commandFailure(`${file} is not a plugin of hikidashi, so it was not changed. Move it away first.`)
  return { opened: hostFile, event, entry, index: isOurs ? 0 : -1, isPlugin: true }
}

export function withHook({ opened, event, entry, index, isPlugin, fileVersion }: OpenedHook): string {
  const { before, format, settings } = opened
  const isVersioned = fileVersion === undefined || valueAt(settings, ['version']) !== undefined
  const text = isVersioned ? (before.text ?? '') : format.set(before.text ?? '', ['version'], fileVersion)
  if (isPlugin) return format.set(text, wholeText, entry)
  const list = valueAt(settings, ['hooks', event])
  if (!Array.isArray(list)) return format.set(text, ['hooks', event], [entry])
  if (JSON.stringify(list[index]) === JSON.stringify(entry)) return text
  const rest = index === -1 ? text : format.remove(text, ['hooks', event, index])
  return format.set(rest, ['hooks', event, index === -1 ? list.length : list.length - 1], entry)
}

export function withoutHook({ opened: { before, format }, event, index, isPlugin }: OpenedHook): string {
  return format.remove(before.text ?? '', isPlugin ? wholeText : ['hooks', event, index])
}
