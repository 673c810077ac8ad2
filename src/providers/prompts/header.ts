import { parseDocument } from 'yaml'
import { z } from 'zod'
import { invalid, isResourceError, type ResourceError } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import type { PromptArgument } from '../../core/provider.ts'
import { compileTemplate } from '../../core/template.ts'
import { deepNestingIn } from '../../text/front-matter.ts'

export interface PromptFrontMatter {
  readonly name?: string
  readonly title?: string
  readonly description?: string
  /** Declared arguments. Undefined: the placeholders in the text are the arguments. */
  readonly arguments?: readonly PromptArgument[]
  /** `argument-hint`: a description of the argument `$ARGUMENTS`, which stands for all arguments in prompts of Claude Code. */
  readonly hint?: string
  /** URIs of resources that come before the text. */
  readonly resources: readonly string[]
}

export function promptError(message: string): ResourceError {
  return invalid(message, 'unreadable')
}

/** Maximum length of front matter, in characters. */
const maxHeader = 32_768
/** Maximum nesting depth of front matter. */
const maxNesting = 200
const [maxArguments, maxResources, maxValues] = [64, 32, 1000]

const line = (most: number) =>
  z
    .string()
    .transform((text) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim())
    .pipe(z.string().min(1).max(most))

/** Form of an argument name, such as in `{{name}}`. */
const argumentName = /^[A-Za-z_][\w-]{0,63}$/

const named = z.string().regex(argumentName)
const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String).pipe(z.string().max(1024))

const argument = z.union([
  named.transform((name) => ({ name })),
  z.object({
    name: named,
    title: line(200).exactOptional(),
    description: line(1000).exactOptional(),
    required: z.boolean().exactOptional(),
    values: z.array(scalar).max(maxValues).exactOptional(),
    complete: z
      .union([z.string(), z.object({ template: z.string(), variable: z.string().exactOptional() })])
      .exactOptional(),
  }),
])

/** Keys of other tools are ignored. */
const header = z.object({
  name: line(128).exactOptional(),
  title: line(200).exactOptional(),
  description: line(1000).exactOptional(),
  arguments: z.array(argument).max(maxArguments).nullish(),
  resources: z.array(z.string().min(1).max(2048)).max(maxResources).nullish(),
  'argument-hint': z.unknown().optional(),
})

/**
 * Parses front matter. Only plain YAML is accepted: no references, which could expand to a huge value.
 *
 * @throws ResourceError `invalid` if it is not YAML, or contains an invalid value.
 */
export function parsePromptFrontMatter(source: string | undefined): PromptFrontMatter {
  if (source === undefined || source.trim() === '') return { resources: [] }
  const result = header.safeParse(yamlIn(source) ?? {})
  if (!result.success) {
    const [issue] = result.error.issues
    throw promptError(`its front matter has a wrong value at ${issue?.path.join('.') || 'its top'}`)
  }
  const { name, title, description, arguments: declared, resources, 'argument-hint': hint } = result.data
  return {
    ...defined({ name, title, description }),
    ...(declared === undefined || declared === null ? {} : { arguments: distinct(declared.map(argumentOf)) }),
    ...(typeof hint === 'string' ? { hint: hint.slice(0, 200) } : {}),
    resources: resources ?? [],
  }
}

function yamlIn(source: string): unknown {
  if (source.length > maxHeader) throw promptError(`its front matter is longer than ${maxHeader} characters`)
  const notYaml = 'its front matter is not YAML, holds references, or is nested too deeply'
  if (deepNestingIn(source, maxNesting) !== undefined) throw promptError(notYaml)
  try {
    const document = parseDocument(source, {
      schema: 'core',
      logLevel: 'silent',
      stringKeys: true,
      prettyErrors: false,
    })
    if (document.errors.length === 0) return document.toJS({ maxAliasCount: 0 })
  } catch {
    // The YAML holds references.
  }
  throw promptError(notYaml)
}

function argumentOf(header: z.output<typeof argument>): PromptArgument {
  if (!('complete' in header) || header.complete === undefined) return header
  const { complete, ...facts } = header
  const { template, variable } = typeof complete === 'string' ? { template: complete } : complete
  return { ...facts, from: { uriTemplate: template, variable: variable ?? onlyVariable(template, header.name) } }
}

/** Returns the variable of a template from which values are taken: the one of the same name, or the only one. */
function onlyVariable(template: string, name: string): string {
  const variables = variablesOf(template)
  const [only, other] = variables
  if (variables.includes(name)) return name
  if (only === undefined || other !== undefined)
    throw promptError(`its argument ${name} does not say which variable of its template completes it`)
  return only
}

function variablesOf(template: string): readonly string[] {
  try {
    return compileTemplate(template).variables
  } catch (error) {
    if (isResourceError(error)) throw promptError('the template of an argument is not a URI template')
    throw error
  }
}

function distinct(declared: readonly PromptArgument[]): readonly PromptArgument[] {
  const names = new Set(declared.map(({ name }) => name))
  if (names.size < declared.length) throw promptError('it has an argument twice')
  return declared
}
