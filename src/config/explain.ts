import { z } from 'zod'
import { memberOf } from '../core/kit/object.ts'
import { describeType, nearestWord, refusal, typeNames, unknownWordRefusal } from '../schema/refusals.ts'
import type { Schema } from '../schema/types.ts'
import { loadConfigSchema } from './schema.ts'
import { outsideMountSchema } from './schema-parts.ts'

export type SchemaIssue = z.core.$ZodIssue

export type CheckedValue<Output> = { readonly data: Output } | { readonly issues: readonly SchemaIssue[] }

/** Validates a refused value a second time, to find the reasons. @returns The result of zod, which is final. */
export function validateWithZod<Output>(schema: Schema<Output>, value: unknown): CheckedValue<Output> {
  const { success, data, error } = toZod(schema).safeParse(value, { error: describeIssue })
  return success ? { data: data as Output } : { issues: error.issues }
}

const converted = new WeakMap<object, z.ZodType>()

/** Calls the functions and methods of zod by which the schema was made. */
function toZod(schema: Schema<unknown>): z.ZodType {
  const cachedType = converted.get(schema)
  if (cachedType !== undefined) return cachedType
  const { before, method, args } = schema.step
  const target = (before === undefined ? z : toZod(before)) as unknown as Readonly<Record<string, unknown>>
  const make = target[method]
  if (typeof make !== 'function') throw new TypeError(`zod has no ${method}`)
  const zodType = make.apply(target, args.map(withZod)) as z.ZodType
  converted.set(schema, zodType)
  return zodType
}

function withZod(argument: unknown): unknown {
  if (Array.isArray(argument)) return argument.map(withZod)
  if (typeof argument !== 'object' || argument === null || argument instanceof RegExp) return argument
  if (isSchema(argument)) return toZod(argument)
  return Object.fromEntries(Object.entries(argument).map(([key, value]) => [key, withZod(value)]))
}

function isSchema(value: object): value is Schema<unknown> {
  return 'step' in value && 'safeParse' in value
}

/** The JSON Schema of `hikidashi.json`, in draft-07 for the sake of editors. */
export async function configJsonSchema(): Promise<Readonly<Record<string, unknown>>> {
  const { $schema, ...schema } = z.toJSONSchema(toZod(await loadConfigSchema()), { target: 'draft-7', io: 'input' })
  addOutside(schema)
  return {
    $schema,
    title: 'hikidashi.json',
    description: 'The sources that hikidashi serves, and the ways to reach them.',
    // For editors that support these settings.
    allowComments: true,
    allowTrailingCommas: true,
    ...schema,
  }
}

/** Of a mount from outside, the options are not known here. */
function addOutside({ properties }: { readonly properties?: object }): void {
  const mounts = memberOf(memberOf(properties, 'mounts'), 'additionalProperties')
  const kinds = memberOf(mounts, 'oneOf') ?? memberOf(mounts, 'anyOf')
  if (!Array.isArray(kinds)) throw new TypeError('The JSON Schema has no kinds of mounts.')
  const {
    $schema: _,
    additionalProperties: __,
    ...outside
  } = z.toJSONSchema(toZod(outsideMountSchema), {
    target: 'draft-7',
    io: 'input',
  })
  kinds.push(outside)
}

export async function formatConfigSchema(): Promise<string> {
  return `${JSON.stringify(await configJsonSchema(), undefined, 2)}\n`
}

/**
 * Returns the message of an issue; `undefined` leaves the message of zod. For unknown keys, it is the JSON of the known
 * keys.
 */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type': {
      const expected = typeNames[issue.expected] ?? issue.expected
      if (issue.input === undefined) return refusal('The key is missing.', `Add it; its value is ${expected}.`)
      return refusal(`The value is ${describeType(issue.input)}.`, `It must be ${expected}.`)
    }
    case 'invalid_value':
      return unknownWordRefusal(issue.input, issue.values.map(String), 'value')
    case 'invalid_union':
      return issue.discriminator === undefined ? undefined : describeDiscriminator(issue)
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array')
        return refusal('The value is empty.', 'Write a value, or remove the key.')
      return refusal(`The value is less than ${issue.minimum}.`, `It must be at least ${issue.minimum}.`)
    case 'too_big':
      if (issue.origin === 'string' || issue.origin === 'array') {
        const unit = issue.origin === 'string' ? 'characters' : 'items'
        return refusal(`The value has more than ${issue.maximum} ${unit}.`, `Keep at most ${issue.maximum}.`)
      }
      return refusal(`The value is more than ${issue.maximum}.`, `It must be at most ${issue.maximum}.`)
    case 'unrecognized_keys':
      // The caller makes a problem of each unknown key, with a fix that names the known keys.
      return JSON.stringify(keysOf(issue.inst))
    default:
      return undefined
  }
}

function describeDiscriminator({
  discriminator = '',
  input,
  options,
}: z.core.$ZodRawIssue & { code: 'invalid_union' }): string {
  const value =
    typeof input === 'object' && input !== null ? (input as Record<string, unknown>)[discriminator] : undefined
  const choices = Array.isArray(options) ? options.map(String) : []
  if (value === undefined)
    return refusal('The key is missing.', `Add it: ${choices.map((name) => JSON.stringify(name)).join(' or ')}.`)
  const unknown = unknownWordRefusal(value, choices, discriminator)
  const isNear = typeof value === 'string' && nearestWord(value, choices) !== undefined
  return isNear
    ? unknown
    : `${unknown} To use a source of your own, write the path of its module, such as "./my-source.js", or the name of its package.`
}

function keysOf(schema: unknown): readonly string[] {
  const shape = (schema as z.core.$ZodObject | undefined)?._zod.def.shape
  return shape === undefined ? [] : Object.keys(shape)
}
