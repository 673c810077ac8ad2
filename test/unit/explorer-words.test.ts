import { afterEach, describe, expect, test } from 'vitest'
import { asideOfMount, iconOfMount, titleOfMount } from '../../src/explorer/web/state/offered.ts'
import { language } from '../../src/explorer/web/words/texts.ts'

const initial = language.value
afterEach(() => {
  language.value = initial
})

describe('a mount of installed packages', () => {
  test.each(['pkg://npm', 'packages://here'])('at %s has the icon and the name of its kind', (uri) => {
    language.value = 'en'
    expect(iconOfMount(uri)).toBe('box')
    expect(titleOfMount({ uri, name: 'npm' })).toBe('Packages')
    language.value = 'ja'
    expect(titleOfMount({ uri, name: 'npm' })).toBe('パッケージ')
    expect(asideOfMount({ uri, name: 'npm', title: 'Dependencies' })).toBe('npm')
  })
})
