import type { Argument, Command, Option } from 'commander'
import { openMount } from '../../config/open-mount.ts'
import { createCatalog } from '../../core/catalog.ts'
import { iteratePages } from '../../core/kit/groups.ts'
import { defined } from '../../core/kit/object.ts'
import type { View } from '../../core/view.ts'
import { createLazyStore } from '../../providers/source.ts'
import { createProgram } from '../program.ts'
import type { ProcessIo } from '../terminal/io.ts'
import type { Secrets } from '../terminal/secrets.ts'
import { escapeText } from '../terminal/text.ts'
import { cleanView } from './clean-view.ts'
import { splitCommand } from './command-line.ts'
import { headersOf } from './headers.ts'
import { planLocalSetUp, storeSettings } from './local.ts'

/**
 * Prints completions, one candidate on a line. For `bash`, the other arguments are the line, the position of the
 * cursor, and the characters at which bash begins a new word; for other shells, the words up to the cursor. A person
 * who presses Tab wants no error message.
 */
export async function completeLine(args: readonly string[], io: ProcessIo): Promise<void> {
  try {
    const [shell, ...rest] = args
    const { words, breaks } = shell === 'bash' ? bashWords(rest) : { words: rest, breaks: '' }
    const { candidates, files } = await candidatesFor(words, io)
    const skipped = brokenOff(words.at(-1) ?? '', breaks)
    const lines = candidates.map(({ value, about }) => formatCandidate(value.slice(skipped), about))
    await io.out.write([...lines, ...(files === undefined ? [] : [`:${files}\n`])].join(''))
  } catch {}
}

async function candidatesFor(words: readonly string[], io: ProcessIo) {
  const quiet: ProcessIo = { ...io, say: () => {}, complain: () => {}, saysToTerminal: false }
  const program = await createProgram(quiet, (name) => words.slice(0, -1).includes(name))
  const completions = completeLastWord(program, words)
  const { kind, typed, prefix } = completions
  const whole = (candidates: readonly LineCandidate[]) =>
    candidates.map((one) => ({ ...one, value: prefix + one.value }))
  if (kind === undefined) return { candidates: whole(fitting(completions.candidates, typed)) }
  if (kind === 'files' || kind === 'folders') return { candidates: [], files: kind }
  const candidates = whole(await completeUris(completions, io.secrets).catch(() => []))
  // The word may be a path of this machine instead of a URI, so the shell adds files.
  const isPath = kind === 'uri' && !/^[A-Za-z][\w+.-]*:/.test(typed) && !completions.given.has('url')
  return isPath ? { candidates, files: 'files' } : { candidates }
}

/** The last quote may still be open. */
function bashWords([line = '', point, breaks = '']: readonly string[]) {
  const typed = line.slice(0, point === undefined ? line.length : Number(point))
  for (const end of ['', '"', "'"])
    try {
      const words = splitCommand(typed + end, 'linux').slice(1)
      return { words: /\s$/.test(typed) && end === '' ? [...words, ''] : words, breaks }
    } catch {}
  return { words: [''], breaks }
}

/**
 * Returns the length of the part of a word that bash does not replace: up to the last `:` or `=` at which bash begins a
 * new word.
 */
function brokenOff(word: string, breaks: string): number {
  return Math.max(...[':', '='].map((mark) => (breaks.includes(mark) ? word.lastIndexOf(mark) + 1 : 0)))
}

function formatCandidate(value: string, about: string | undefined): string {
  const [first = ''] = (about ?? '').split('\n')
  return `${escapeText(value)}${first === '' ? '' : `\t${escapeText(first)}`}\n`
}

const maxCandidates = 500
const completionTimeoutMs = 2000
const silent = () => {}

/**
 * Completes the addresses of mounts, and the children of the typed directory. A server of `--command` is not started.
 */
async function completeUris(completions: Completions, secrets: Secrets): Promise<readonly LineCandidate[]> {
  const { typed, given, kind } = completions
  if (given.has('command')) return []
  const url = given.get('url')?.[0]
  const signal = AbortSignal.timeout(completionTimeoutMs)
  if (url !== undefined) {
    const { connect } = await import('../../client/index.ts')
    const bearerFile = given.get('bearer-file')?.[0]
    const options = { header: given.get('header') ?? [], headerEnv: given.get('header-env') ?? [] }
    const view = await connect(
      { url, headers: headersOf({ ...options, ...defined({ bearerFile }) }, secrets) },
      { signal, timeoutMs: completionTimeoutMs },
    )
    const roots = (await view.mounts({ signal })).map(({ uri }) => uri)
    return kind === 'address' ? addresses(roots, typed) : completeInDirectory(view, roots, typed, signal)
  }
  const config = given.get('config')?.[0]
  const planned = await planLocalSetUp(config === undefined ? {} : { config }, secrets)
  if ('problems' in planned) return []
  const { local } = planned
  const roots = local.mounts.map(({ address }) => address)
  if (kind === 'address') return addresses(roots, typed)
  const mount = local.mounts.find(({ address }) => typed.startsWith(`${bare(address)}/`))
  // For the current folder, served by default, the relative paths that the shell adds are enough.
  if (mount === undefined) return local.assumed && typed === '' ? [] : addresses(roots, typed, '/')
  const storeOptions = storeSettings(local)
  const store = storeOptions === undefined ? undefined : createLazyStore(storeOptions, silent)
  const catalog = createCatalog({
    mounts: [await openMount(mount, { log: silent, ...defined({ store }) })],
    log: silent,
  })
  try {
    return await completeInDirectory(cleanView(catalog.view(local.principal), secrets), roots, typed, signal)
  } finally {
    await catalog.close()
    await store?.close()
  }
}

async function completeInDirectory(
  view: View,
  roots: readonly string[],
  typed: string,
  signal: AbortSignal,
): Promise<readonly LineCandidate[]> {
  const root = roots.find((one) => typed.startsWith(`${bare(one)}/`))
  if (root === undefined) return addresses(roots, typed, '/')
  const directory = typed.slice(0, typed.lastIndexOf('/') + 1)
  const lineCandidates: LineCandidate[] = []
  for await (const { items } of iteratePages((query) => view.directory({ uri: directory, ...query }, { signal }))) {
    const candidates = items.map(({ uri, title }) => ({ value: uri, ...defined({ about: title }) }))
    lineCandidates.push(...fitting(candidates, typed))
    if (lineCandidates.length >= maxCandidates) break
  }
  return lineCandidates.slice(0, maxCandidates)
}

function addresses(roots: readonly string[], typed: string, end = ''): readonly LineCandidate[] {
  return fitting(
    roots.map((root) => ({ value: bare(root) + end })),
    typed,
  )
}

function bare(uri: string): string {
  return uri.replace(/(?<!\/)\/$/, '')
}

interface LineCandidate {
  readonly value: string
  readonly about?: string
}

interface Completions {
  readonly candidates: readonly LineCandidate[]
  readonly kind?: 'files' | 'folders' | 'uri' | 'address'
  readonly prefix: string
  readonly typed: string
  readonly given: ReadonlyMap<string, readonly string[]>
}

/** @param words The words after `hikidashi`. */
export function completeLastWord(program: Command, words: readonly string[]): Completions {
  const values = new Map<string, readonly string[]>()
  const typed = words.at(-1) ?? ''
  let command = program
  let position = 0
  let awaiting: Option | undefined
  let onlyArguments = false
  for (const word of words.slice(0, -1)) {
    if (awaiting !== undefined) {
      addOptionValue(values, awaiting, word)
      awaiting = undefined
    } else if (word === '--') onlyArguments = true
    else if (word.startsWith('-') && !onlyArguments) {
      const [flag = '', value] = splitFlag(word)
      const option = optionOf(command, flag)
      if (option !== undefined && value !== undefined) addOptionValue(values, option, value)
      else if (option?.required === true) awaiting = option
    } else {
      const inner: Command | undefined = position === 0 ? subcommandOf(command, word) : undefined
      if (inner === undefined) position++
      else command = inner
    }
  }
  if (awaiting !== undefined) return { ...optionCompletions(awaiting), prefix: '', typed, given: values }
  const [flag = '', value] = typed.startsWith('--') && !onlyArguments ? splitFlag(typed) : []
  const option = value === undefined ? undefined : optionOf(command, flag)
  if (option !== undefined)
    return { ...optionCompletions(option), prefix: `${flag}=`, typed: value ?? '', given: values }
  const rest = { prefix: '', typed, given: values }
  if (typed.startsWith('-') && !onlyArguments) return { candidates: flagsOf(command), ...rest }
  if (position === 0 && command.commands.length > 0) return { candidates: subcommandCandidates(command), ...rest }
  return { ...argumentCompletions(argumentAt(command, position)), ...rest }
}

function fitting(candidates: readonly LineCandidate[], typed: string): readonly LineCandidate[] {
  return candidates.filter(({ value }) => value.startsWith(typed))
}

function splitFlag(word: string): readonly [string, string?] {
  const equals = word.startsWith('--') ? word.indexOf('=') : -1
  return equals === -1 ? [word] : [word.slice(0, equals), word.slice(equals + 1)]
}

function addOptionValue(values: Map<string, readonly string[]>, option: Option, value: string): void {
  const name = option.attributeName()
  values.set(name, [...(values.get(name) ?? []), value])
}

function optionOf({ options }: Command, flag: string): Option | undefined {
  return options.find(({ short, long }) => flag === short || flag === long)
}

function subcommandOf({ commands }: Command, name: string): Command | undefined {
  return commands.find((command) => command.name() === name)
}

function argumentAt({ registeredArguments }: Command, position: number): Argument | undefined {
  const last = registeredArguments.at(-1)
  return registeredArguments[position] ?? (last?.variadic === true ? last : undefined)
}

function flagsOf(command: Command): readonly LineCandidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long, short, description }) => [{ value: long ?? short ?? '', about: description }])
    .filter(({ value }) => value !== '')
}

function subcommandCandidates({ commands }: Command): readonly LineCandidate[] {
  return commands.map((command) => ({ value: command.name(), about: command.summary() || command.description() }))
}

function optionCompletions({ argChoices, flags }: Option): Pick<Completions, 'candidates' | 'kind'> {
  if (argChoices !== undefined) return { candidates: argChoices.map((value) => ({ value })) }
  return placeholderCompletions(/[<[]([^>\]]*)[>\]]/.exec(flags)?.[1] ?? '')
}

function argumentCompletions(argument: Argument | undefined): Pick<Completions, 'candidates' | 'kind'> {
  if (argument?.argChoices !== undefined) return { candidates: argument.argChoices.map((value) => ({ value })) }
  return placeholderCompletions(argument?.name() ?? '')
}

/** @param name The placeholder in the help, such as `file` or `uri`. */
function placeholderCompletions(name: string): Pick<Completions, 'candidates' | 'kind'> {
  const called = name.replace(/\.\.\.$/, '')
  if (/^(?:file|files)$/.test(called)) return { candidates: [], kind: 'files' }
  if (/^(?:dir|folder|directory)$/.test(called)) return { candidates: [], kind: 'folders' }
  if (/^uris?$/.test(called)) return { candidates: [], kind: 'uri' }
  return called === 'address' ? { candidates: [], kind: 'address' } : { candidates: [] }
}
