/** Variables by their names, as they are at one time. */
export interface Environment {
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Changes whenever one of them does, where that can be told. */
  readonly version?: string
}
