import { lstatSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { folderOption, mountSource, type PlannedMount, searchesOf } from '../../config/plan.ts'
import type { ManifestDifference } from '../../context/manifest.ts'
import type { Assembled, Explanation, OmittedItem } from '../../context/types.ts'
import type { Catalog } from '../../core/catalog.ts'
import { isResourceError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { parseAddress, pathInMount } from '../../core/uri.ts'
import { locatePath } from '../../providers/source.ts'
import { commandFailure } from '../terminal/exit.ts'
import { type Io, ioError, pluralize } from '../terminal/io.ts'
import { coloursFor, createColumns, displayUri, escapeText } from '../terminal/text.ts'
import { waitForIndex } from './indexing.ts'

const mostOmitted = 20

export function formatExplanation(
  { tokens, budget, encoding, items, omitted }: Assembled,
  histories: readonly string[],
  isTerminal: boolean,
): string {
  const { bold } = coloursFor(isTerminal)
  const number = (value: number) => value.toLocaleString('en')
  const head = `${pluralize(items.length, 'resource')}, ${number(tokens)} of ${number(budget)} tokens (${encoding})`
  const layOut = createColumns([0, 2])
  const rows = items.map(({ uri, level, tokens: each, required, explanation, notes }) => [
    number(each),
    level,
    explanation.score.toFixed(3),
    displayUri(uri),
    [...(required ? ['required'] : []), because(explanation), ...notes].join('; '),
  ])
  const table = items.length === 0 ? '' : layOut([['tokens', 'level', 'score', 'resource', 'why'], ...rows])
  const history =
    histories.length === 0
      ? 'The change frequency of the resources is not known, so it is ignored.'
      : `The change frequency of the resources is from the history of ${histories.map((uri) => displayUri(uri)).join(', ')}.`
  return [bold(head), table.trimEnd(), ...left(omitted), history].filter((part) => part !== '').join('\n\n')
}

function because({ factors }: Explanation): string {
  return factors
    .filter(({ name, value }) => name === 'relevance' || Math.abs(value - 1) >= 0.005)
    .map(({ name, value, because: reason }) =>
      escapeText(name === 'relevance' ? reason : `${name} ×${value.toFixed(2)} (${reason})`),
    )
    .join(', ')
}

const reasons: Readonly<Record<OmittedItem['reason'], string>> = {
  budget: 'does not fit',
  count: 'there are enough other resources',
  duplicate: 'has the same content as another',
  unreadable: 'cannot be read',
}

function left(omitted: readonly OmittedItem[]): readonly string[] {
  if (omitted.length === 0) return []
  const layOut = createColumns([0])
  const rows = omitted.slice(0, mostOmitted).map(({ uri, reason, of, explanation }) => {
    const other = of === undefined ? '' : `: ${displayUri(of)}`
    return [explanation.score.toFixed(3), displayUri(uri), `${reasons[reason]}${other}`]
  })
  const more = omitted.length - rows.length
  const end = more === 0 ? [] : [`… and ${more.toLocaleString('en')} more`]
  return [[`Left out: ${omitted.length.toLocaleString('en')}`, layOut(rows).trimEnd(), ...end].join('\n')]
}

export function formatDifferences(
  differences: readonly ManifestDifference[],
  before: string | undefined,
  after: string | undefined,
): string {
  if (before === after) return 'Nothing has changed: the text of the context is the same.'
  if (differences.length === 0 && before === undefined) return 'None of the resources in the manifest has changed.'
  if (differences.length === 0) return 'The contents have not changed; only the form of the text has.'
  const lines = differences.map(({ uri, what, from, to }) => {
    const levels = from === to || from === undefined || to === undefined ? '' : ` (${from} → ${to})`
    return `  ${words[what]}  ${displayUri(uri)}${levels}`
  })
  return [`Changed since the manifest: ${differences.length}`, ...lines].join('\n')
}

const words: Readonly<Record<ManifestDifference['what'], string>> = {
  changed: 'changed',
  level: 'level  ',
  gone: 'gone   ',
  new: 'new    ',
}

/**
 * Counts the changes of files in the git history, for mounted repositories and for mounted folders that are
 * repositories. The result has the addresses of these mounts in `known`; `changes` returns `undefined` if the number is
 * not known.
 */
export async function countFileChanges(mounts: readonly PlannedMount[], log: Log, timeoutMs = 3000) {
  const repositories = mounts.flatMap(repositoryOf)
  if (repositories.length === 0) return { changes: () => undefined, known: [] }
  const { countActivity } = await import('../../providers/git/list.ts')
  const activity = await Promise.all(
    repositories.map(async (repository) => ({
      ...repository,
      counts: await countActivity({ ...repository.place, log, timeoutMs }),
    })),
  )
  const activities = activity.filter(({ counts }) => counts !== undefined)
  return {
    known: activities.map(({ address }) => address),
    changes: (uri: string) => {
      for (const { address, prefix, counts } of activities) {
        if (!uri.startsWith(`${address}/`)) continue
        const path = pathInMount(uri, address)
        return path.startsWith(prefix) ? counts?.get(path.slice(prefix.length)) : undefined
      }
      return undefined
    },
  }
}

function repositoryOf(planned: PlannedMount) {
  const { config } = planned
  const name = folderOption(config)
  if (name === undefined) return []
  const { path: repository, ...found } = locatePath(name, planned)
  const { text: address } = parseAddress(planned.address)
  const place = { repository, ...found }
  const { prefix = '' } = mountSource(config).folder ?? {}
  // With a prefix, the paths are those of a revision, so the folder is a repository, maybe a bare one.
  return prefix !== '' || isThere(join(repository, '.git')) ? [{ address, place, prefix }] : []
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** @throws CommandError, with the name of the file, if it cannot be read or parsed */
export async function parseTextFile<T>(file: string, parse: (text: string) => T): Promise<T> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw ioError('read', `The file ${file}`, error)
  })
  try {
    return parse(text)
  } catch (error) {
    if (!isResourceError(error)) throw error
    throw commandFailure(`${file}: ${error.message}`)
  }
}

export async function writeTextFile(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((error: unknown) => {
    throw ioError('written', `The file ${file}`, error)
  })
}

/** Without an index, a search takes longer and finds less. */
export async function waitForIndexes(catalog: Catalog, io: Io): Promise<void> {
  for (const { provider } of searchesOf(catalog)) await waitForIndex(provider, io)
}
