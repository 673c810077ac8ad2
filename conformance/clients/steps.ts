/** The steps of a session, in the order of the table in docs/hosts.md. */
export const steps = [
  'list',
  'templates',
  'text',
  'japanese',
  'blob',
  'expanded',
  'absent',
  'searchTool',
  'searchTemplate',
  'subscribe',
  'completion',
  'prompts',
  'prompt',
] as const

export type Step = (typeof steps)[number]

export const transports = ['stdio', 'http'] as const

export type Transport = (typeof transports)[number]

/** The task of a session. The runner passes it as JSON in the last argument of the session's process. */
export interface Plan {
  readonly transport: Transport
  /** The command that starts the server over stdio. */
  readonly command: string
  readonly args: readonly string[]
  /** The script of the built command, and the path of the configuration. */
  readonly hikidashi: string
  readonly config: string
  /** The URL of the server over HTTP. */
  readonly url: string
  /** A folder that the client may write its own files to. */
  readonly home: string
  readonly uris: Readonly<Record<'text' | 'japanese' | 'blob' | 'absent', string>>
  /** A template that the server lists, and the value of its `{+path}`. */
  readonly expanded: { readonly template: string; readonly path: string }
  /** A word that only one document contains. */
  readonly word: string
  /** The template of a search, with the query in `{?q}`. */
  readonly searchTemplate: string
  /** A file to change while its resource is subscribed to. */
  readonly watched: { readonly uri: string; readonly file: string; readonly text: string }
  /** The template, variable and beginning of a value to complete. */
  readonly completion: { readonly template: string; readonly name: string; readonly value: string }
  readonly prompt: { readonly name: string; readonly arguments: Readonly<Record<string, string>> }
}

/**
 * The end of a step: the value from the client, an error, or, for a step that was left out, the names of everything that the client
 * offers, so that the runner can check that none of them does the step.
 */
export type Ended = { readonly value: unknown } | { readonly error: string } | { readonly offers: readonly string[] }

/** A session's result, one line of JSON on its standard output. */
export type Result = Readonly<Partial<Record<Step, Ended>>>
