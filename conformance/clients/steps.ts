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

/** A session's whole task. The runner hands it over as JSON, the last argument of the session's process. */
export interface Plan {
  readonly transport: Transport
  /** How the server is started over stdio. */
  readonly command: string
  readonly args: readonly string[]
  /** The built command's script, and the configuration that it serves. */
  readonly hikidashi: string
  readonly config: string
  /** Where it is reached over HTTP. */
  readonly url: string
  /** A folder that the client may write its own files to. */
  readonly home: string
  readonly uris: Readonly<Record<'text' | 'japanese' | 'blob' | 'absent', string>>
  /** A template that the server lists, and what stands for its `{+path}`. */
  readonly expanded: { readonly template: string; readonly path: string }
  /** A word that one document holds. */
  readonly word: string
  /** A template that searches for its `{?q}`. */
  readonly searchTemplate: string
  /** A file to change while its resource is subscribed to. */
  readonly watched: { readonly uri: string; readonly file: string; readonly text: string }
  /** The template, variable and beginning of a value to complete. */
  readonly completion: { readonly template: string; readonly name: string; readonly value: string }
  readonly prompt: { readonly name: string; readonly arguments: Readonly<Record<string, string>> }
}

/**
 * How a step ended: with what the client handed over, with an error, or not done, and then with all that the client
 * offers, so that the runner can see for itself that there is no way to do it.
 */
export type Ended = { readonly value: unknown } | { readonly error: string } | { readonly offers: readonly string[] }

/** A session's result, one line of JSON on its standard output. */
export type Result = Readonly<Partial<Record<Step, Ended>>>
