/** An identifier between quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Affinity that SQLite derives from a declared type (https://www.sqlite.org/datatype3.html#determination_of_column_affinity). */
export type Affinity = 'numeric' | 'text' | 'none'

export function affinityOf(type: string, isStrict: boolean): Affinity {
  if (isStrict && /^any$/i.test(type)) return 'none'
  if (/int/i.test(type)) return 'numeric'
  if (/char|clob|text/i.test(type)) return 'text'
  return type === '' || /blob/i.test(type) ? 'none' : 'numeric'
}
