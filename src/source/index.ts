/** The toolkit for a source outside of hikidashi (docs/writing-a-provider.md). */
import type { OutsideSource } from '../providers/outside.ts'
import * as z from '../schema/builder.ts'
import { count, duration, durationFrom, glob, globs, secret, size, sizeUpTo, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'

export type { OutsideContext as SourceContext, OutsideSource } from '../providers/outside.ts'
export type { SourceAbilities } from '../providers/source.ts'

/** Declares a source. The types of its options follow from their schemas. */
export function defineSource<const Shape extends z.Shape>(source: OutsideSource<Shape>): OutsideSource<Shape> {
  return source
}

/**
 * The schemas of options. They have `describe(text)`, `optionalKey(text)` for an option that may be left out, and
 * `refine(isGood, { error })`, with an error of {@link refusal}.
 */
export const option = {
  /** A text that is not empty. */
  text: () => text,
  /** A whole number, at least 1. */
  count: () => count,
  /** A finite number. */
  number: () => z.number(),
  boolean: () => z.boolean(),
  /** One of several words. */
  choice: <const Word extends string>(words: readonly Word[]) => z.enum(words),
  list: <Item extends z.Schema<unknown>>(item: Item) => z.array(item),
  object: <const Shape extends z.Shape>(shape: Shape) => z.strictObject(shape),
  /** A reference to a secret: `{ "env": "NAME" }` or `{ "file": "path" }`. {@link SourceContext.secret} reads it. */
  secret: () => secret,
  /** A duration such as "30s", in milliseconds. `least` and `most` are written in the same way. */
  duration: (least?: string, most?: string) => (least === undefined ? duration : durationFrom(least, most)),
  /** A size such as "16MiB", in bytes. `most` is written in the same way. */
  size: (most?: string) => (most === undefined ? size : sizeUpTo(most)),
  glob: () => glob,
  /** One glob, or several. */
  globs: () => globs,
} as const

export { refusal }
