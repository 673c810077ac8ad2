import type { Argument, Command, Option } from 'commander'

/** One thing that a word can become. */
export interface Candidate {
  readonly value: string
  /** Description for people. */
  readonly about?: string
}

/** Possible completions at the cursor. */
export interface Wanted {
  readonly candidates: readonly Candidate[]
  /** Kind of further candidates that the shell or the server knows. */
  readonly kind?: 'files' | 'folders' | 'uri' | 'address'
  /** Part of the word before the completed part, such as `--config=`. */
  readonly prefix: string
  /** The part that has been typed. */
  readonly typed: string
  /** The values of the options that have been typed, by their names: `config`, `url`. */
  readonly given: ReadonlyMap<string, readonly string[]>
}

/** Finds out what can stand in the place of the last word of a command line. The first is that behind `hikidashi`. */
export function wantedAt(program: Command, words: readonly string[]): Wanted {
  const given = new Map<string, readonly string[]>()
  const typed = words.at(-1) ?? ''
  let command = program
  let position = 0
  let awaiting: Option | undefined
  let onlyArguments = false
  for (const word of words.slice(0, -1)) {
    if (awaiting !== undefined) {
      keep(given, awaiting, word)
      awaiting = undefined
    } else if (word === '--') onlyArguments = true
    else if (word.startsWith('-') && !onlyArguments) {
      const [flag = '', value] = splitFlag(word)
      const option = optionOf(command, flag)
      if (option !== undefined && value !== undefined) keep(given, option, value)
      else if (option?.required === true) awaiting = option
    } else {
      const inner: Command | undefined = position === 0 ? subcommandOf(command, word) : undefined
      if (inner === undefined) position++
      else command = inner
    }
  }
  if (awaiting !== undefined) return { ...valuesOf(awaiting), prefix: '', typed, given }
  const [flag = '', value] = typed.startsWith('--') && !onlyArguments ? splitFlag(typed) : []
  const option = value === undefined ? undefined : optionOf(command, flag)
  if (option !== undefined) return { ...valuesOf(option), prefix: `${flag}=`, typed: value ?? '', given }
  const rest = { prefix: '', typed, given }
  if (typed.startsWith('-') && !onlyArguments) return { candidates: flagsOf(command), ...rest }
  if (position === 0 && command.commands.length > 0) return { candidates: namesOf(command), ...rest }
  return { ...argumentValues(argumentAt(command, position)), ...rest }
}

/** Those of the candidates that the word can become, in their order. */
export function fitting(candidates: readonly Candidate[], typed: string): readonly Candidate[] {
  return candidates.filter(({ value }) => value.startsWith(typed))
}

function splitFlag(word: string): readonly [string, string?] {
  const equals = word.startsWith('--') ? word.indexOf('=') : -1
  return equals === -1 ? [word] : [word.slice(0, equals), word.slice(equals + 1)]
}

function keep(given: Map<string, readonly string[]>, option: Option, value: string): void {
  const name = option.attributeName()
  given.set(name, [...(given.get(name) ?? []), value])
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

function flagsOf(command: Command): readonly Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long, short, description }) => [{ value: long ?? short ?? '', about: description }])
    .filter(({ value }) => value !== '')
}

function namesOf({ commands }: Command): readonly Candidate[] {
  return commands.map((command) => ({ value: command.name(), about: command.summary() || command.description() }))
}

function valuesOf({ argChoices, flags }: Option): Pick<Wanted, 'candidates' | 'kind'> {
  if (argChoices !== undefined) return { candidates: argChoices.map((value) => ({ value })) }
  return kindOf(/[<[]([^>\]]*)[>\]]/.exec(flags)?.[1] ?? '')
}

function argumentValues(argument: Argument | undefined): Pick<Wanted, 'candidates' | 'kind'> {
  if (argument?.argChoices !== undefined) return { candidates: argument.argChoices.map((value) => ({ value })) }
  return kindOf(argument?.name() ?? '')
}

/** Returns the kind of a value by its name in the help. */
function kindOf(name: string): Pick<Wanted, 'candidates' | 'kind'> {
  const called = name.replace(/\.\.\.$/, '')
  if (/^(?:file|files)$/.test(called)) return { candidates: [], kind: 'files' }
  if (/^(?:dir|folder|directory)$/.test(called)) return { candidates: [], kind: 'folders' }
  if (/^uris?$/.test(called)) return { candidates: [], kind: 'uri' }
  return called === 'address' ? { candidates: [], kind: 'address' } : { candidates: [] }
}
