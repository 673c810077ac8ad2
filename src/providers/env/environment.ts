/** Snapshot of variables by name. */
export interface Environment {
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Changes whenever a variable changes; undefined when changes cannot be detected. */
  readonly version?: string
}
