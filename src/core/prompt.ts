import type { Audience, Context, Icon } from './provider.ts'

/** One argument of a prompt, as a person or a program fills it in. */
export interface PromptArgument {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
  /** The values that are proposed. Others may be given all the same. */
  readonly values?: readonly string[]
  /** A resource template (a complete URI template) one variable of which proposes values: the caller's, as it sees them. */
  readonly from?: { readonly uriTemplate: string; readonly variable: string }
}

/** A prompt that a provider offers: messages for a model, with places for arguments. */
export interface Prompt {
  /** The path of the entry that it is written in: whoever may see that may use the prompt. */
  readonly path: string
  /** What it is asked for by. Not empty. Of two with one name, the second is asked for by its URI. */
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly icons?: readonly Icon[]
  readonly arguments?: readonly PromptArgument[]
}

/** A piece of a prompt: text, or a resource by its URI, which is read as the caller. */
export type PromptPart = { readonly text: string } | { readonly uri: string }

export interface PromptMessage<Part = PromptPart> {
  readonly role: Audience
  readonly content: Part
}

/** A prompt with its arguments filled in. */
export interface FilledPrompt<Part = PromptPart> {
  readonly description?: string
  readonly messages: readonly PromptMessage<Part>[]
}

export interface PromptRequest {
  readonly path: string
  /** Those that were given. All that are required are there, and none that the prompt does not have. */
  readonly arguments: ReadonlyMap<string, string>
}

/** The prompts of a provider. They change with its entries: a change of a prompt is `listed`. */
export interface Prompts {
  /** All of them, in path order. */
  list(context: Context): Promise<readonly Prompt[]>
  /** The messages of one. Throws `not-found` where there is no prompt at the path. */
  get(request: PromptRequest, context: Context): Promise<FilledPrompt>
}
