import type { Unable } from './judge.ts'
import type { Step, Transport } from './steps.ts'

/** A client with a session that the suite runs. */
export interface Client {
  /** The npm package, whose exact version is in `../package.json`. */
  readonly name: string
  /** The session's file in this folder. */
  readonly session: string
  readonly transports: readonly Transport[]
  /** The steps that the client cannot do. All other steps are required. */
  readonly unable: Readonly<Partial<Record<Step, Unable>>>
  /** The part of the list that the client requests, if it does not request all of it. */
  readonly lists?: string
  /** An older revision to which the client falls back if the server does not answer in time, as on a busy machine. */
  readonly fallback?: { readonly from: string; readonly to: string; readonly when: string }
  /** The form of the package, for the reports, if the package has several. */
  readonly form?: string
  /** A remark for the table in the documentation. */
  readonly note?: string
  /** Number of source files of the project, if it is not the usual one. Such a session is not in the table. */
  readonly modules?: number
}

const both: readonly Transport[] = ['stdio', 'http']

const codexUnable: Client['unable'] = {
  subscribe: { reason: 'no way to subscribe', offers: /mcp.*subscri|resource.*(?:subscri|watch)/i },
  completion: { reason: 'none to complete', offers: /mcp.*complet|resource.*complet/i },
  prompts: { reason: 'none to use prompts', offers: /prompt/i },
  prompt: { reason: 'none to use prompts', offers: /prompt/i },
}

export const clients: readonly Client[] = [
  {
    name: '@ai-sdk/mcp',
    session: 'ai-sdk.ts',
    transports: both,
    unable: { subscribe: { reason: 'has no method to subscribe', offers: /subscri|updated/i } },
    fallback: { from: '2026-07-28', to: '2025-11-25', when: 'over stdio, when no answer comes within a second' },
  },
  {
    name: '@mastra/mcp',
    session: 'mastra.ts',
    transports: both,
    unable: { completion: { reason: 'has no method to complete', offers: /complet/i } },
  },
  { name: 'mcp-use', session: 'mcp-use.ts', transports: both, unable: {} },
  {
    name: '@langchain/mcp-adapters',
    session: 'langchain.ts',
    transports: both,
    unable: {},
    note: '`listResources` asks for the first page alone, so all pages, changes, completion and prompts are asked for with the client of `getClient`',
  },
  {
    name: 'mcporter',
    session: 'mcporter-command.ts',
    transports: both,
    lists: 'lists the first page alone',
    unable: {
      templates: { reason: 'no command for templates', offers: /template/i },
      subscribe: { reason: 'none to subscribe', offers: /subscri|\bwatch/i },
      completion: { reason: 'none to complete', offers: /completion/i },
      prompts: { reason: 'none for prompts', offers: /^\s*prompts?\s/i },
      prompt: { reason: 'none for prompts', offers: /^\s*prompts?\s/i },
    },
    form: 'its command',
  },
  {
    name: 'mcporter',
    session: 'mcporter-library.ts',
    transports: both,
    unable: {},
    form: 'its library',
    note: 'templates, changes, completion and prompts by the client of `connect`',
  },
  {
    name: '@openai/codex',
    session: 'codex.ts',
    transports: both,
    unable: codexUnable,
    note: 'its app server, and its model for which a stand-in speaks; of each page of a list, the model sees the beginning and the end',
  },
  {
    // Codex drops the whole list of a server with more than 2,048 resources (docs/hosts.md).
    name: '@openai/codex',
    session: 'codex.ts',
    transports: ['stdio'],
    modules: 2500,
    lists: 'the first 2,000',
    form: 'a large project',
    unable: codexUnable,
  },
]
