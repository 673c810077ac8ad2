/**
 * Builds the schemas of the configuration, with functions and methods of zod 4 (https://zod.dev) under the same names,
 * and `optionalKey`, which combines two of them.
 * A schema accepts a value, with the output that zod would have, or refuses it without a reason. Loading zod and
 * building its schemas is slow, so `config/explain.ts` does that when a value was refused, to say why.
 */
import { isObject } from '../core/kit/object.ts'
import type {
  DiscriminatedUnion,
  Literal,
  Members,
  output,
  ParseResult,
  RefinementCtx,
  Refusal,
  Schema,
  SchemaStep,
  Shape,
  Sized,
  Text,
} from './types.ts'

export type * from './types.ts'

/** Return value of a transformation that has added an issue. */
export const NEVER = undefined as never

// A registered symbol, because a source from outside may make its schemas with another copy of this package.
const refused = Symbol.for('hikidashi.refused')

/** Returns the output of an accepted value, or {@link refused}. */
type Judge = (value: unknown) => unknown

interface Facts {
  readonly judge: Judge
  readonly step: SchemaStep
  readonly shape?: Shape
  readonly inner?: Schema<unknown>
  readonly value?: unknown
  readonly options?: readonly Schema<unknown>[]
  readonly isOptional?: true
  readonly fallback?: { readonly value: unknown }
}

type Made = Facts & Schema<unknown>

/** The result keeps the facts of the schema before it, such as the members of an object. */
function follow(before: Made, method: string, args: readonly unknown[], judge: Judge, more: Partial<Facts> = {}): Made {
  // The facts are own properties, which a spread copies. The methods are in the prototype.
  return make({ ...(before as Facts), ...more, judge, step: { before, method, args } })
}

/** Like {@link follow}, for a schema that accepts outputs for which `isGood` holds. */
function narrow(before: Made, method: string, args: readonly unknown[], isGood: (value: unknown) => boolean): Made {
  return follow(before, method, args, (value) => {
    const result = before.judge(value)
    return result !== refused && isGood(result) ? result : refused
  })
}

/** Runs a function that may add issues. Returns its result, or {@link refused} if it has added any. */
function judged(value: unknown, act: (value: unknown, context: RefinementCtx) => unknown): unknown {
  let isRefused = false
  const result = act(value, {
    addIssue: () => {
      isRefused = true
    },
  })
  return isRefused ? refused : result
}

const numberOrLength = (value: unknown): number =>
  typeof value === 'number' ? value : (value as { length: number }).length

// A start makes many schemas, so they share one prototype.
const methods = {
  safeParse(this: Made, value: unknown): ParseResult<unknown> {
    const data = this.judge(value)
    return data === refused ? { success: false } : { success: true, data }
  },
  parse(this: Made, value: unknown): unknown {
    const data = this.judge(value)
    if (data === refused) throw new TypeError('The value does not match the schema.')
    return data
  },
  describe(this: Made, text: string): Made {
    return follow(this, 'describe', [text], this.judge)
  },
  refine(this: Made, isGood: (value: unknown) => boolean, refusal: Refusal): Made {
    return narrow(this, 'refine', [isGood, refusal], isGood)
  },
  superRefine(this: Made, judge: (value: unknown, context: RefinementCtx) => void): Made {
    return narrow(this, 'superRefine', [judge], (value) => judged(value, judge) !== refused)
  },
  transform(this: Made, change: (value: unknown, context: RefinementCtx) => unknown): Made {
    const { judge } = this
    const changed = (value: unknown) => {
      const result = judge(value)
      return result === refused ? refused : judged(result, change)
    }
    return make({ judge: changed, step: { before: this, method: 'transform', args: [change] } })
  },
  default(this: Made, value: unknown): Made {
    const { judge } = this
    const filled = (input: unknown) => (input === undefined ? value : judge(input))
    return follow(this, 'default', [value], filled, { fallback: { value } })
  },
  exactOptional(this: Made): Made {
    return follow(this, 'exactOptional', [], this.judge, { isOptional: true, inner: this })
  },
  optionalKey(this: Made, text: string): Made {
    return methods.describe.call(methods.exactOptional.call(this), text)
  },
  unwrap(this: Made): Schema<unknown> | undefined {
    return this.inner
  },
  min(this: Made, least: number, refusal?: Refusal): Made {
    const args = refusal === undefined ? [least] : [least, refusal]
    return narrow(this, 'min', args, (value) => numberOrLength(value) >= least)
  },
  max(this: Made, most: number, refusal?: Refusal): Made {
    const args = refusal === undefined ? [most] : [most, refusal]
    return narrow(this, 'max', args, (value) => numberOrLength(value) <= most)
  },
  regex(this: Made, pattern: RegExp, refusal: Refusal): Made {
    return narrow(this, 'regex', [pattern, refusal], (value) => pattern.test(String(value)))
  },
}

function make(facts: Facts): Made {
  return Object.assign(Object.create(methods) as Schema<unknown>, facts)
}

function makeSchema<Kind>(method: string, args: readonly unknown[], judge: Judge, more: Partial<Facts> = {}): Kind {
  return make({ ...more, judge, step: { before: undefined, method, args } }) as unknown as Kind
}

/** Like {@link makeSchema}, for a schema that returns the values for which `isGood` holds, unchanged. */
function accept<Kind>(method: string, args: readonly unknown[], isGood: (value: unknown) => boolean, more = {}): Kind {
  return makeSchema(method, args, (value) => (isGood(value) ? value : refused), more)
}

const string = (): Text => accept('string', [], (value) => typeof value === 'string')
const number = (): Sized<number> => accept('number', [], Number.isFinite)
const int = (): Sized<number> => accept('int', [], Number.isSafeInteger)
const boolean = (): Schema<boolean> => accept('boolean', [], (value) => typeof value === 'boolean')
const never = (): Schema<never> => accept('never', [], () => false)

const literal = <const Value extends string | boolean>(value: Value): Literal<Value> =>
  accept('literal', [value], (input) => input === value, { value })

const enumOf = <const Value extends string>(values: readonly Value[]): Schema<Value> =>
  accept('enum', [values], (input) => (values as readonly unknown[]).includes(input))

function array<Item extends Schema<unknown>>(item: Item): Sized<output<Item>[]> {
  const { judge } = item as unknown as Made
  return makeSchema('array', [item], (value) => {
    if (!Array.isArray(value)) return refused
    const results = value.map(judge)
    return results.includes(refused) ? refused : results
  })
}

function union<const Options extends readonly Schema<unknown>[]>(
  options: Options,
  refusal?: Refusal,
): Schema<output<Options[number]>> {
  return makeSchema('union', refusal === undefined ? [options] : [options, refusal], (value) => {
    for (const option of options as unknown as readonly Made[]) {
      const result = option.judge(value)
      if (result !== refused) return result
    }
    return refused
  })
}

function discriminatedUnion<const Options extends readonly Schema<unknown>[]>(
  key: string,
  options: Options,
): DiscriminatedUnion<Options> {
  // Each option has another literal at the key, so one option at most accepts a value.
  const { judge } = union(options) as unknown as Made
  return makeSchema('discriminatedUnion', [key, options], judge, { options })
}

function record<Value extends Schema<unknown>>(
  key: Schema<string>,
  value: Value,
): Schema<Record<string, output<Value>>> {
  const [ofKey, ofValue] = [key, value] as unknown as readonly [Made, Made]
  return makeSchema('record', [key, value], (input) => {
    if (!isObject(input)) return refused
    const members: Record<string, unknown> = {}
    for (const [name, one] of Object.entries(input)) {
      if (name === '__proto__') continue
      const judgedOne = ofKey.judge(name) === refused ? refused : ofValue.judge(one)
      if (judgedOne === refused) return refused
      members[name] = judgedOne
    }
    return members
  })
}

function strictObject<Keys extends Shape>(shape: Keys): Members<Keys> {
  return makeSchema('strictObject', [shape], (value) => membersOf(value, shape, true), { shape })
}

/** Other members are dropped. */
function object<Keys extends Shape>(shape: Keys): Members<Keys> {
  return makeSchema('object', [shape], (value) => membersOf(value, shape, false), { shape })
}

function membersOf(value: unknown, shape: Shape, isStrict: boolean): unknown {
  if (!isObject(value)) return refused
  if (isStrict && Object.keys(value).some((key) => !Object.hasOwn(shape, key))) return refused
  const members: Record<string, unknown> = {}
  for (const [key, schema] of Object.entries(shape)) {
    const { judge, fallback, isOptional } = schema as Made
    if (Object.hasOwn(value, key)) {
      const member = judge(value[key])
      if (member === refused) return refused
      members[key] = member
    } else if (fallback !== undefined) members[key] = fallback.value
    else if (isOptional === undefined) return refused
  }
  return members
}

export {
  array,
  boolean,
  discriminatedUnion,
  enumOf as enum,
  int,
  literal,
  never,
  number,
  object,
  record,
  strictObject,
  string,
  union,
}
