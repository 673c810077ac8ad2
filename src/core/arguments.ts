import { invalid } from './errors.ts'
import type { JsonObject } from './tool.ts'

/** Default maximum length of a text argument, in characters. */
const maxText = 8192

/** Readers for the arguments of a tool. An error names the argument, and never repeats its value. */
export interface Arguments {
  text(name: string, most?: number): string | undefined
  required(name: string, most?: number): string
  count(name: string, bounds: { readonly least: number; readonly most: number; readonly otherwise: number }): number
  number(name: string): number | undefined
  flag(name: string): boolean
  /** Returns the argument if it is one of the words. */
  choice<Word extends string>(name: string, words: readonly Word[]): Word | undefined
  /** Returns an array argument after `judge` has converted each item. */
  list<Item>(name: string, most: number, judge: (item: unknown, name: string) => Item): readonly Item[] | undefined
}

/** @throws ResourceError `invalid` for an argument that the tool does not know, so that a model can correct its call. */
export function argumentsIn(given: JsonObject, schema: JsonObject): Arguments {
  const { properties = {} } = schema as { readonly properties?: JsonObject }
  const known = Object.keys(properties)
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown !== undefined) throw invalid(`There is an unknown argument. Known are: ${known.join(', ')}.`, 'argument')

  const text = (name: string, most = maxText): string | undefined => {
    const value = given[name]
    if (value === undefined || value === null) return undefined
    if (typeof value !== 'string') throw invalid(`${name}: It is not a text.`, 'argument')
    if (value.length > most)
      throw invalid(`${name}: It is longer than ${most} characters.`, 'argument', { limit: most })
    return value
  }
  return {
    text,
    required: (name, most) => {
      const value = text(name, most)
      if (value === undefined || value === '') throw invalid(`${name}: It is missing.`, 'argument')
      return value
    },
    count: (name, { least, most, otherwise }) => {
      const value = given[name]
      if (value === undefined || value === null) return otherwise
      if (!Number.isSafeInteger(value) || Number(value) < least || Number(value) > most)
        throw invalid(`${name}: It is not a whole number from ${least} to ${most}.`, 'argument')
      return Number(value)
    },
    number: (name) => {
      const value = given[name]
      if (value === undefined || value === null) return undefined
      if (typeof value !== 'number' || !Number.isFinite(value))
        throw invalid(`${name}: It is not a number.`, 'argument')
      return value
    },
    flag: (name) => {
      const value = given[name] ?? false
      if (typeof value !== 'boolean') throw invalid(`${name}: It is neither true nor false.`, 'argument')
      return value
    },
    choice: (name, words) => {
      const value = text(name)
      if (value === undefined) return undefined
      const word = words.find((one) => one === value)
      if (word === undefined) throw invalid(`${name}: It is none of ${words.join(', ')}.`, 'argument')
      return word
    },
    list: (name, most, judge) => {
      const value = given[name]
      if (value === undefined || value === null) return undefined
      if (!Array.isArray(value)) throw invalid(`${name}: It is not an array.`, 'argument')
      if (value.length > most) throw invalid(`${name}: There are more than ${most}.`, 'argument', { limit: most })
      return value.map((item: unknown, index) => judge(item, `${name}[${index}]`))
    },
  }
}

export const readOnly = { readOnly: true, destructive: false, idempotent: true, openWorld: false } as const
