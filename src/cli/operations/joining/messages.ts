export interface PassedMessage {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** Returns the message in a line, or the messages of a batch; none for a text that is not JSON. */
export function parseMessages(line: string): readonly PassedMessage[] {
  try {
    const value: unknown = JSON.parse(line)
    return (Array.isArray(value) ? value : [value]).filter(
      (one) => typeof one === 'object' && one !== null,
    ) as PassedMessage[]
  } catch {
    return []
  }
}
