import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { lockedVersion } from '../tools.ts'
import type { Client } from './declared.ts'
import type { Outcome } from './judge.ts'
import { type Step, transports } from './steps.ts'

const page = fileURLToPath(new URL('../../docs/hosts.md', import.meta.url))

const marks = ['<!-- sessions -->\n', '<!-- /sessions -->\n'] as const

/** The columns of the table, each with the steps that it summarizes. */
const columns: readonly (readonly [title: string, steps: readonly Step[]])[] = [
  ['lists', ['list']],
  ['templates', ['templates']],
  ['reads', ['text', 'japanese', 'blob', 'expanded', 'absent']],
  ['searches', ['searchTool', 'searchTemplate']],
  ['is told of changes', ['subscribe']],
  ['completes', ['completion']],
  ['prompts', ['prompts', 'prompt']],
]

/** Formats the results of the sessions as a Markdown table: a row for each client, in order. */
export function tableOf(outcomes: readonly Outcome[]): string {
  const clients = [...new Set(outcomes.map(({ client }) => client))].filter(({ modules }) => modules === undefined)
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  const head = ['client', 'over stdio', 'over HTTP', ...columns.map(([title]) => title), 'remarks']
  return row(head) + row(head.map(() => '---')) + clients.map((client) => row(cellsOf(client, outcomes))).join('')
}

function cellsOf(client: Client, outcomes: readonly Outcome[]): readonly string[] {
  const own = outcomes.filter((outcome) => outcome.client === client)
  const form = client.form === undefined ? '' : `, ${client.form}`
  return [
    `\`${client.name}\` ${lockedVersion(client.name)}${form}`,
    ...transports.map((transport) =>
      revisionOf(client, own.find((outcome) => outcome.transport === transport)?.revision),
    ),
    ...columns.map(([, steps]) => {
      if (!own.every(({ did }) => steps.every((step) => did.includes(step)))) return '-'
      return client.lists !== undefined && steps.includes('list') ? 'in part' : 'yes'
    }),
    remarksOn(client).join('; '),
  ]
}

/** Returns the revision for the table. The remarks of a client mention the revision to which it falls back. */
function revisionOf({ fallback }: Client, revision = '-'): string {
  return revision === fallback?.to ? fallback.from : revision
}

function remarksOn({ note, lists, unable, fallback }: Client): readonly string[] {
  const falls = fallback === undefined ? undefined : `takes ${fallback.to} ${fallback.when}`
  const reasons = [lists, ...Object.values(unable).map(({ reason }) => reason), falls, note]
  return [...new Set(reasons.filter((reason) => reason !== undefined))]
}

/**
 * Compares the table in `docs/hosts.md` with that of these outcomes, or writes it there. Resolves to a fault. `undefined`: there is
 * none.
 */
export async function checkTable(
  outcomes: readonly Outcome[],
  { write }: { readonly write: boolean },
): Promise<string | undefined> {
  const text = await readFile(page, 'utf8')
  const [from, to] = [text.indexOf(marks[0]) + marks[0].length, text.indexOf(marks[1])]
  if (from < marks[0].length || to < from) return 'docs/hosts.md has no place for the table of the sessions.'
  const wanted = `\n${tableOf(outcomes)}\n`
  if (text.slice(from, to) === wanted) return undefined
  if (!write)
    return 'The table in docs/hosts.md is not what the sessions showed: npm run conformance -- clients --write'
  await writeFile(page, text.slice(0, from) + wanted + text.slice(to))
  return undefined
}
