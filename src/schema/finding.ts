/** A step from a value into it: a key, or an index from 0. */
export type Step = string | number

/** Something wrong with a value in a configuration, before it is known where in the file it is. */
export interface Finding {
  readonly path: readonly Step[]
  readonly message: string
  readonly fix: string
}
