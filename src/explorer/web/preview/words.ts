import { createWords } from '../words/language.ts'
import { en } from './words-en.ts'
import { ja } from './words-ja.ts'

/** The words of the previews. */
export const t = createWords(en, ja)
