import { signal } from '@preact/signals'

/** The hit that is previewed while the reader goes through the results. It is not part of the permalink. */
export const peek = signal<string | undefined>(undefined)
