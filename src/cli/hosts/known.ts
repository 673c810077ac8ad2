import { Argument, InvalidArgumentError, Option } from 'commander'
import { nearest } from '../../schema/refusals.ts'
import { misused } from '../terminal/exit.ts'
import { codex, geminiCli, goose, opencode } from './agents.ts'
import { claudeCode, claudeDesktop, cursor, vscode, zed } from './editors.ts'
import { hostName } from './how-to-add.ts'
import { type Host, scopes } from './types.ts'

/** The hosts whose files are known. */
export const hosts: readonly Host[] = [
  claudeCode,
  claudeDesktop,
  vscode,
  cursor,
  codex,
  geminiCli,
  goose,
  opencode,
  zed,
]

/** The argument that names a host. */
export const hostArgument = () => new Argument('<host>', 'the host').choices(ids).argParser(parseHost)

const ids = hosts.map(({ id }) => id)

function parseHost(word: string): string {
  if (ids.includes(word)) return word
  // People often leave out a part of a name, or mistype it.
  const meant = word.length < 3 ? [] : ids.filter((id) => id.includes(word.toLowerCase()))
  const near = meant.length > 0 ? meant : [nearest(word, ids)].filter((id) => id !== undefined)
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  throw new InvalidArgumentError(`${hint} There are ${ids.join(', ')}.`.trim())
}

export const scopeOption = () =>
  new Option('--scope <scope>', 'for you everywhere, or for the current folder as a project')
    .choices(scopes)
    .default('user')

/** Collects the values of a repeatable option. */
export const addWord = (word: string, words: readonly string[] = []): readonly string[] => [...words, word]

/** @throws CommandError for a name that no host has. */
export function hostNamed(id: string): Host {
  const host = hosts.find((other) => other.id === id)
  if (host === undefined)
    throw misused(`There is no host ${id}. There are: ${hosts.map((other) => other.id).join(', ')}.`)
  return host
}

/** Returns the name of an entry in the form that the host accepts. */
export function entryName(host: Host, name: string): string {
  if (hostName(name) !== name)
    throw misused(`${JSON.stringify(name)} is not a name that every host accepts: use letters, digits, - and _.`)
  return host.nameOf?.(name) ?? name
}
