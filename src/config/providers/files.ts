import { z } from 'zod'
import { globs, glob, size, text } from '../fields.ts'
