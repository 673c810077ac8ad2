import { signal } from '@preact/signals'

/** The hit that is previewed while the reader goes through the results. It is no place of its own: it stands in no permalink. */
export const peek = signal<string | undefined>(undefined)
