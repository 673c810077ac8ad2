export type ParseResult<Output> =
  | { readonly success: true; readonly data: Output }
  | { readonly success: false; readonly data?: undefined }

export interface RefinementCtx {
  addIssue(issue: {
    readonly code: 'custom'
    readonly message: string
    readonly path?: readonly (string | number)[]
  }): void
}

/** A text, or a function that makes one from the refused value. */
export interface Refusal {
  readonly error: string | ((issue: { readonly input?: unknown }) => string)
  /** The member that is at fault, below the refused value. */
  readonly path?: readonly string[]
}

/** A schema is made by a function of `builder.ts`, or by a method of the schema before it. */
export interface SchemaStep {
  readonly before: Schema<unknown> | undefined
  readonly method: string
  readonly args: readonly unknown[]
}

export interface Schema<Output> {
  readonly step: SchemaStep
  safeParse(value: unknown): ParseResult<Output>
  /** Returns the output. @throws TypeError for a value that is refused */
  parse(value: unknown): Output
  describe(text: string): this
  refine(isGood: (value: Output) => boolean, refusal: Refusal): this
  superRefine(judge: (value: Output, context: RefinementCtx) => void): this
  transform<Other>(change: (value: Output, context: RefinementCtx) => Other): Schema<Other>
  default(value: Output): Schema<Output>
  /** Returns the schema of an optional key. A present key may not have the value `undefined`. */
  exactOptional(): Optional<this>
  /** Like `exactOptional().describe(text)`. */
  optionalKey(text: string): Optional<this>
}

export interface Optional<Inner> extends Schema<output<Inner>> {
  readonly isOptional: true
  unwrap(): Inner
}

/** The size is the length of a text or an array, or a number itself. */
export interface Sized<Output> extends Schema<Output> {
  min(least: number, refusal?: Refusal): this
  max(most: number, refusal?: Refusal): this
}

export interface Text extends Sized<string> {
  regex(pattern: RegExp, refusal: Refusal): this
}

export interface Literal<Value> extends Schema<Value> {
  readonly value: Value
}

/** Several kinds of object, distinguished by the literal at one key. */
export interface DiscriminatedUnion<Options extends readonly Schema<unknown>[]>
  extends Schema<output<Options[number]>> {
  readonly options: Options
}

export type Shape = Readonly<Record<string, Schema<unknown>>>

export interface Members<Keys> extends Schema<OutputOf<Keys>> {
  readonly shape: Keys
}

export type output<Kind> = Kind extends { parse(value: unknown): infer Output } ? Output : never

export type OptionalKeys<Keys> = {
  [Key in keyof Keys]: Keys[Key] extends { readonly isOptional: true } ? Key : never
}[keyof Keys]

export type OutputOf<Keys> = Flat<
  { -readonly [Key in Exclude<keyof Keys, OptionalKeys<Keys>>]: output<Keys[Key]> } & {
    -readonly [Key in OptionalKeys<Keys>]?: output<Keys[Key]>
  }
>

type Flat<Type> = { [Key in keyof Type]: Type[Key] }
