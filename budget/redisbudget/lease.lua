-- One lease from a pool: a bucket of tokens on one hash, refilled by Redis' own clock. A key that was lost starts
-- empty, so that no failure of Redis grants more than the rate.
-- KEYS[1]  the pool
-- ARGV     rate, millionths of a token per second; wanted; least; covered, ms since the client's last report
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local rate, wanted, least, covered = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'slot', 'covered', 'clients', 'before')
local tokens, at, slot = tonumber(kept[1]) or 0, tonumber(kept[2]) or now, tonumber(kept[3]) or now
local sum, clients, before = tonumber(kept[4]) or 0, tonumber(kept[5]) or 0, tonumber(kept[6]) or 0

-- A second of the pool may lie there, and ten tokens, so that the dearest retry of a small pool can be paid. A clock
-- that goes back adds nothing.
tokens = math.min(tokens + rate * math.max(now - at, 0) / 1000, math.max(rate, 10000000))
local granted = 0
if wanted > 0 and tokens >= least then
  granted = math.floor(math.min(wanted, tokens))
  if granted < wanted then -- what is left of a token helps nobody, and stays for the next who asks
    granted = math.max(granted - granted % 1000000, least)
  end
  tokens = tokens - granted
end

-- Each client covers, by its reports, all the time that it lives. So the time that was covered in a slot, by that of
-- the slot, is how many there are. Too few would each spend too much while Redis is away: until a slot has ended nobody
-- knows, and the most of this slot and the last two counts, since one that Redis' absence or its clock has stretched
-- counts too few.
local length = 30000
if now < slot then
  slot, sum = now, 0
end
sum = sum + covered
local seen = sum / math.max(now - slot, length)
if now - slot >= length then
  before = clients
  clients, sum, slot = seen, 0, now
end
local known = clients > 0 and math.max(clients, before, seen) or 0
redis.call('HSET', KEYS[1], 'tokens', string.format('%.0f', tokens), 'at', now, 'slot', slot, 'covered', string.format('%.0f', sum),
  'clients', string.format('%.3f', clients), 'before', string.format('%.3f', before))
redis.call('PEXPIRE', KEYS[1], 600000)
return {granted, string.format('%.3f', known)}
