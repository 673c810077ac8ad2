import '../style/theme.css'
import '../style/layout.css'
import { render } from 'preact'
import { followBrowse } from '../state/browse.ts'
import { followHealing } from '../state/healing.ts'
import { followChanges } from '../state/live.ts'
import { followAddress } from '../state/place.ts'
import { start } from '../state/session.ts'
import { App } from './app.tsx'
import { connectThroughHost } from './connect.ts'
import { followPicks } from './given.ts'
import { followKeys } from './keys.ts'
import { followLinks } from './links.ts'
import { followLook } from './look.ts'

const page = document.getElementById('page')
if (page === null) throw new Error('The page has no place to draw in.')

followAddress()
followBrowse()
followHealing()
followChanges()
followKeys()
followLinks()
render(<App />, page)
void start(connectThroughHost).then(() => {
  followLook()
  followPicks()
})
