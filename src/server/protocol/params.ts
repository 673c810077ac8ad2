import { invalid } from '../../core/errors.ts'
import { isObject } from './messages.ts'

/** The params of a request, unchecked. */
export type Params = Readonly<Record<string, unknown>>

/** @throws ResourceError `invalid` for a value that is not a string. The message repeats nothing of the request. */
export function requiredString(params: Params, name: string): string {
  const value = params[name]
  if (typeof value !== 'string') throw invalid(`The param ${name} is not a string.`, 'params')
  return value
}

export function optionalString(params: Params, name: string): string | undefined {
  return params[name] === undefined ? undefined : requiredString(params, name)
}

/** Maximum number of arguments. */
const maxArguments = 100

/** @throws ResourceError `invalid` for a value that is not an object of strings. */
export function stringsIn(given: unknown, where: string, longest: number): ReadonlyMap<string, string> {
  if (!isObject(given)) throw invalid(`${where} is not an object.`, 'params')
  const entries = Object.entries(given)
  if (entries.length > maxArguments) throw invalid(`${where} has over ${maxArguments} members.`, 'params')
  return new Map(
    entries.map(([name, value]) => {
      if (typeof value !== 'string' || value.length > longest || name.length > longest)
        throw invalid(`A member of ${where} is not a string of at most ${longest} characters.`, 'params')
      return [name, value]
    }),
  )
}

/** Returns the variables of a completion that are already filled in: `context.arguments`. */
export function filledIn(context: unknown): ReadonlyMap<string, string> {
  if (context === undefined) return new Map()
  const given = isObject(context) ? (context.arguments ?? {}) : undefined
  return stringsIn(given, 'context.arguments', 8192)
}
