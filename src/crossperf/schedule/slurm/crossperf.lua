-- Sends a job to the partition where it should run, by the table that 'crossperf slurm table' writes.
--
-- Runs inside slurmctld, so: Lua 5.1 to 5.4, no program is started, no socket opened, one small file is read, and
-- whatever goes wrong leaves the job as the user sent it. place() never raises and never refuses a job.

--@settings@

local VERSION = "1"
local HEADER = #"crossperf-table\t1\t0000000000\t0000000000\t0123456789abcdef\n"
local PIECE, LONGEST_TAIL = 4096, 1024 * 1024 -- in bytes
local UP = 3 -- PARTITION_UP of slurm.h: takes jobs and starts them
-- A job that would take longer than this stays as it is: slurmctld answers nobody else while it waits for this code.
-- Functions in C are not counted, so every pattern here takes time in proportion to a text of bounded length.
local MOST_INSTRUCTIONS = 200000
local LONGEST_FIELD, LONGEST_ARGUMENT, MOST_ARGUMENTS = 1024, 128, 15

local unpack = unpack or table.unpack -- moved in Lua 5.2

local set = function(names)
  local members = {}
  for _, name in ipairs(names) do members[name] = true end
  return members
end
local LAUNCHERS, PREFIXES = set(WORDS.launchers), set(WORDS.prefixes)
local INTERPRETERS, SHELL = set(WORDS.interpreters), set(WORDS.shell)
local GENERAL, ENDINGS = set(WORDS.general), set(WORDS.endings)

-- A number that the user gave, or nil: Slurm writes a huge one for "not given".
local function given(value, nothing)
  value = tonumber(value)
  if value and value >= 0 and value < nothing then return value end
  return nil
end

-- The table -----------------------------------------------------------------------------------------------------------

local function hex(character) return ("%%%02X"):format(character:byte()) end

local function escaped(text) return (text:gsub("[%c%%,;\127]", hex)) end

local function unescaped(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- The same sum as in table.py; one flipped byte or two swapped ones change it.
local function checksum(text)
  local sum = 0
  for i = 1, #text do sum = (sum * 257 + text:byte(i)) % 4294967291 end
  return ("%08x"):format(sum)
end

local function split(text, mark)
  local fields = {}
  for field in (text .. mark):gmatch("([^" .. mark .. "]*)" .. mark) do fields[#fields + 1] = field end
  return fields
end

-- The fields of the first line that starts so, or nil where there is none or it is not as it was written.
local function line(text, start)
  local at = text:find("\n" .. start .. "\t", 1, true)
  local body, sum = (at and text:match("^[^\n]*", at + 1) or ""):match("^(.*)\t(%x+)$")
  if not body or checksum(body) ~= sum then return nil end
  return split(body, "\t")
end

-- Open the table and read what stands in its last lines: about the site and its partitions.
local function open_table(path)
  local file = io.open(path, "rb")
  if not file then return nil, "there is no table at " .. path end
  local header, size = file:read(HEADER), file:seek("end")
  local version, length, keys_end, digest = (header or ""):match("^crossperf%-table\t(%d+)\t(%d+)\t(%d+)\t(%x+)\n$")
  local rest = size and keys_end and size - tonumber(keys_end)
  local tail
  if version == VERSION and tonumber(length) == size and rest > 0 and rest < LONGEST_TAIL then
    file:seek("set", tonumber(keys_end) - 1)
    tail = file:read(rest + 1)
  end
  if not tail or tail:sub(-#digest - 6) ~= "\nend\t" .. digest .. "\n" then
    file:close()
    return nil, path .. " is torn or of another version"
  end
  return { file = file, keys_end = tonumber(keys_end), tail = tail }
end

-- The line of a key. Lines are sorted by the sum of their key and no longer than half a piece, so that a few pieces
-- tell where it must be, however large the table is.
local function key_line(opened, app, user, input)
  local key = table.concat({ escaped(app), escaped(user), escaped(input) }, "\t")
  local sum = checksum(key)
  local wanted, from, to = tonumber(sum, 16), HEADER - 1, opened.keys_end
  while to - from > PIECE do
    local middle = math.floor((from + to) / 2)
    opened.file:seek("set", middle)
    local next_sum = (opened.file:read(PIECE) or ""):match("\nkey\t(%x+)\t")
    if next_sum and tonumber(next_sum, 16) < wanted then from = middle else to = middle end
  end
  opened.file:seek("set", from)
  return line(opened.file:read(to - from + 2 * PIECE) or "", "key\t" .. sum .. "\t" .. key)
end

-- What a job is called ------------------------------------------------------------------------------------------------

local function words_of(comment)
  local words, from = {}, 1
  comment = " " .. (comment or ""):sub(1, WORDS.longest_comment)
  while true do
    local _, at, name = comment:find("[%s;](%a+)=", from)
    if not at then return words end
    local value, after = comment:match('^"([^"]+)"()', at + 1)
    if not value then value, after = comment:match("^([^%s;]+)()", at + 1) end
    if value and not words[name] then words[name] = unescaped(value) end
    from = after or at
  end
end

-- A pattern that ends in $ alone would try every place of the text; from the other end there is one place to try.
local function without_end(text, class) return text:reverse():gsub("^" .. class .. "+", ""):reverse() end

local function base(path) return path:reverse():match("^/*([^/]*)"):reverse() end

-- The program that a command line runs, or nil: past assignments, launchers and their options. And whether a launcher
-- starts it, and how many words it looked at, of `most`.
local function program_of(command, most)
  local launched, interpreter, skip, module, seen = false, nil, 0, false, 0
  for word in command:gmatch("%S+") do
    if seen == most then return nil, false, seen end
    seen = seen + 1
    word = word:gsub("^[\"']", ""):gsub("[\"']$", "")
    local name = base(word)
    if skip > 0 then
      skip = skip - 1
    elseif module then
      return word, launched, seen
    elseif word:find("^[|;&<>(){}]") then
      return interpreter, launched, seen
    elseif word:find("^[%a_][%w_]*=") then -- an assignment before the command
    elseif word:find("^%-") then
      if interpreter then module = word == "-m" else skip = WORDS.values[word] or 0 end
    elseif word:find("[$`]") then
      return interpreter, launched, seen
    elseif not interpreter and LAUNCHERS[name] then
      launched = true
    elseif not interpreter and PREFIXES[name] then -- time ./a.out is ./a.out
    elseif not interpreter and INTERPRETERS[without_end(name, "[%d.]")] then
      interpreter = name
    elseif not launched and not interpreter and SHELL[word] then
      return nil, false, seen
    else
      return name ~= "" and name or nil, launched, seen
    end
  end
  return interpreter, launched, seen
end

-- The program of a batch script, of the first line with a launcher or else of the first command; and that line.
local function executable(script)
  local first, first_line
  local text, left = (script or ""):sub(1, WORDS.longest):gsub("\\\n", " "), WORDS.most
  for command in text:gmatch("[^\n]+") do
    if not command:find("^%s*#") then
      local program, launched, seen = program_of(command, left)
      if program and launched then return program, command end
      if program and not first then first, first_line = program, command end
      left = left - seen
      if left == 0 then break end
    end
  end
  return first, first_line
end

-- Whether jobs of many programs bear a name.
local function is_general(name)
  return GENERAL[name:lower()] or ENDINGS[(name:lower():match("%.[^.]*$"))] or INTERPRETERS[without_end(name, "[%d.]")]
end

-- A sum over what a job was told to do: jobs with the same one did the same work. Nil where that is not known.
local function work_of(job, command)
  local script, arguments = job.script, job.argv
  if not command and (script or not arguments) then return nil end
  local words = { (command or ""):sub(1, LONGEST_FIELD), #(script or "") }
  for i = 0, MOST_ARGUMENTS do words[#words + 1] = tostring(arguments and arguments[i] or ""):sub(1, LONGEST_ARGUMENT) end
  return checksum(table.concat(words, "\n"))
end

local function input_class(nodes)
  local class = 1
  while class < nodes do class = class * 2 end
  return ("nodes-%d"):format(class)
end

-- What the job may be called, likeliest first; what it works on; whether it wants no advice; and a sum over its work.
local function named(job)
  local words, apps = words_of(job.comment), {}
  if words.crossperf == "off" then return apps, "", true end
  local function guess(name)
    if name and name ~= "" and #name <= WORDS.longest_name then apps[#apps + 1] = name end
  end
  local program, command = executable(job.script)
  if words.app then
    guess(words.app)
  else
    if program and not is_general(program) then guess(program) end
    if job.name and not is_general(job.name) then guess(job.name) end
  end
  local nodes = given(job.min_nodes, slurm.NO_VAL or 4294967294) or 1
  local said = words.input and #words.input <= WORDS.longest_name and words.input
  return apps, said or input_class(nodes), false, work_of(job, command)
end

-- The most special key that the table has.
local function find(opened, apps, user, input)
  for _, app in ipairs(apps) do
    for _, key in ipairs({ { user, input }, { "", input }, { "", "" } }) do
      local row = key_line(opened, app, key[1], key[2])
      if row then return app, row end
    end
  end
  return nil
end

-- What a partition can take -------------------------------------------------------------------------------------------

local function listed(names, name)
  for _, word in ipairs(split(names, ",")) do
    if word == name then return true end
  end
  return false
end

-- Whether a list of those allowed, or of those denied, keeps a name out.
local function barred(allowed, denied, name)
  if allowed and allowed ~= "" and not listed(allowed, name or "") then return true end
  return denied and denied ~= "" and name and listed(denied, name)
end

-- Whether a partition's nodes, `times` of them, offer what a list such as 'gres:gpu:2,gres:nvme:1' asks for.
local function offers(offered, wanted, times)
  for _, resource in ipairs(split(wanted, ",")) do
    resource = resource:gsub("^gres[:/]", "")
    local name, count = resource:match("^(.-)[:=](%d+)$")
    local has = tonumber(("," .. offered .. ","):match("," .. (name or resource):gsub("%p", "%%%0") .. "=(%d+),"))
    if not has or has * times < tonumber(count or 1) then return false end
  end
  return true
end

local function has_features(offered, wanted)
  if wanted:find("[^%w%._&,%-]") then return false end -- or, not, counts: not for us to judge
  for name in wanted:gmatch("[^&,]+") do
    if not listed(offered, name) then return false end
  end
  return true
end

-- Whether the nodes, processors and memory of a partition are enough.
local function roomy(job, facts, total)
  local none, none16 = slurm.NO_VAL or 4294967294, slurm.NO_VAL16 or 65534
  local nodes = given(job.min_nodes, none) or 1
  local most = math.min(total, given(job.max_nodes, none) or total)
  local cpus, memory = tonumber(facts[5]), tonumber(facts[6])
  local wanted = given(job.min_cpus, none) or 1
  local per_node = math.max(
    given(job.pn_min_cpus, none16) or 1,
    (given(job.ntasks_per_node, none16) or 1) * (given(job.cpus_per_task, none16) or 1),
    math.ceil(wanted / math.max(most, 1))
  )
  if nodes > total or most < 1 then return false end
  if (wanted > 1 or per_node > 1) and not (cpus and per_node <= cpus) then return false end
  local mem = math.max(given(job.min_mem_per_node, 2 ^ 62) or 0, (given(job.min_mem_per_cpu, 2 ^ 62) or 0) * per_node)
  return mem == 0 or (memory ~= nil and mem <= memory)
end

-- Whether a job may be sent to a partition: what is not known counts as not there.
local function takes(job, part, facts)
  if not part or not facts or part.state_up ~= UP then return false end
  local infinite = slurm.INFINITE or 4294967295
  local total = math.min(given(part.total_nodes, infinite) or 0, given(part.max_nodes, infinite) or infinite)
  local limit = given(job.time_limit, slurm.NO_VAL or 4294967294) or 0
  if job.time_limit == infinite and given(part.max_time, infinite) then return false end
  if limit > (given(part.max_time, infinite) or infinite) then return false end
  if (given(job.min_nodes, slurm.NO_VAL or 4294967294) or 1) < (given(part.min_nodes, infinite) or 0) then return false end
  if barred(part.allow_accounts, part.deny_accounts, job.account or job.default_account) then return false end
  if barred(part.allow_qos, part.deny_qos, job.qos or job.default_qos) then return false end
  if job.features and not has_features(facts[7], job.features) then return false end
  if job.tres_per_node and not offers(facts[8], job.tres_per_node, 1) then return false end
  if job.tres_per_job and not offers(facts[8], job.tres_per_job, total) then return false end
  return roomy(job, facts, total)
end

-- Why a job stays as it is, or nil: it asks for places by name, or in a way that is not checked here.
local function fixed(job)
  if job.partition and job.partition ~= "" then return "it names a partition" end
  for _, field in ipairs({ "req_nodes", "reservation", "clusters", "tres_per_socket", "tres_per_task" }) do
    if job[field] and job[field] ~= "" then return "it sets " .. field end
  end
  for _, field in ipairs({ "features", "tres_per_node", "tres_per_job", "account", "qos" }) do
    if #tostring(job[field] or "") > LONGEST_FIELD then return field .. " is longer than what is checked" end
  end
  if given(job.het_job_offset, slurm.NO_VAL or 4294967294) then return "it is part of a heterogeneous job" end
  return nil
end

-- The decision --------------------------------------------------------------------------------------------------------

local function default_partition(part_list, otherwise)
  for name, part in pairs(part_list) do
    if part.flag_default == 1 or part.flag_default == true then return name end
  end
  return otherwise
end

-- A relative time; what is none raises. Lua 5.1 takes 'nan' and 'inf' for numbers.
local function ratio(text)
  local value = tonumber(text)
  if value and value > 0 and value < math.huge then return value end
  error("the table holds " .. tostring(text) .. " for a time", 0)
end

-- Choices as partition, relative time, its range, and the number of runs behind it; by the policy, best first.
local function choices_of(row)
  local choices = {}
  for _, text in ipairs(split(row[7], ";")) do
    local name, relative, low, high, runs = unpack(split(text, ","))
    relative, low, high, runs = ratio(relative), ratio(low), ratio(high), tonumber(runs)
    choices[#choices + 1] = { name = unescaped(name), relative = relative, low = low, high = high, runs = runs }
  end
  return choices
end

local function duration(seconds)
  if seconds < 90 then return ("%.3g s"):format(seconds) end
  if seconds < 5400 then return ("%.3g min"):format(seconds / 60) end
  return ("%.3g h"):format(seconds / 3600)
end

local function sentence(app, choice, platform, base_choice, seconds, policy)
  local how = choice.runs > 0 and ("measured %d times"):format(choice.runs) or "predicted"
  local time = seconds and (" about " .. duration(seconds * choice.relative)) or ""
  local what
  if base_choice and base_choice.name ~= choice.name then
    what = ("takes%s %.3g times as long as on %s (range %.3g to %.3g; %s)"):format(
      time ~= "" and time .. "," or "", choice.relative / base_choice.relative, base_choice.name,
      choice.low / base_choice.relative, choice.high / base_choice.relative, how)
  else
    what = ("%s%s there (%s)"):format(time ~= "" and "takes" or "is best left", time, how)
  end
  return ("crossperf: partition %s (%s) by policy '%s': %s %s. Your own choice: -p PARTITION."):format(
    choice.name, platform, policy, app, what)
end

-- The limit on another platform, in minutes: the top of the range, so that the job is not cut short there.
local function scaled(limit, choice, base_choice, part)
  local minutes = math.max(1, math.ceil(limit * choice.high / base_choice.relative))
  return math.min(minutes, given(part.max_time, slurm.INFINITE or 4294967295) or minutes)
end

local function tag(job, app, input, work)
  if SITE.tag_jobs and app and not job.admin_comment then
    local words = "crossperf app=" .. app:gsub("[%s%%;]", hex) .. " input=" .. input:gsub("[%s%%;]", hex)
    job.admin_comment = words .. (work and " work=" .. work or "")
  end
end

-- What the table knows of a job: the name it goes by, its row, and the lines about site and partitions.
local function look_up(apps, user, input)
  local opened, problem = open_table(SITE.table)
  if not opened then
    slurm.log_info("%s", "crossperf: " .. problem .. "; jobs are left as they are")
    return nil
  end
  local fine, app, row = pcall(find, opened, apps, user, input)
  opened.file:close()
  if not fine then error(app, 0) end
  return app, row, opened.tail
end

local function decide(job, part_list)
  local apps, input, off, work = named(job)
  if off then return end
  local why = fixed(job)
  local app, row, tail = look_up(apps, job.user_name or "", input)
  tag(job, app or apps[1], input, work)
  if not row or why then return end
  local site = line(tail, "site")
  if not site or (site[4] ~= "0" and os.time() > tonumber(site[4])) then
    return slurm.log_info("%s", "crossperf: the table is older than its queues are good for; jobs are left as they are")
  end
  local default = default_partition(part_list, unescaped(site[5]))
  local best, base_choice
  for _, choice in ipairs(choices_of(row)) do
    choice.facts = line(tail, "partition\t" .. escaped(choice.name))
    if not best and takes(job, part_list[choice.name], choice.facts) then best = choice end
    if choice.name == default then base_choice = choice end
  end
  if not best then return end
  local message = sentence(app, best, unescaped(best.facts[3]), base_choice, tonumber(row[6]), unescaped(site[2]))
  local limit = given(job.time_limit, slurm.NO_VAL or 4294967294)
  if best.name ~= default then
    if SITE.scale_limits and limit and base_choice then
      job.time_limit = scaled(limit, best, base_choice, part_list[best.name])
    end
    job.partition = best.name
  end
  slurm.log_user("%s", message)
end

-- Call a function that may take no more than so many instructions; a hook of the site's own is put back.
local function bounded(most, call, ...)
  if not debug or not debug.sethook then return pcall(call, ...) end
  local hook, mask, count = debug.gethook()
  debug.sethook(function() error("it took more than " .. most .. " instructions", 0) end, "", most)
  local fine, problem = pcall(call, ...)
  if type(hook) == "function" then debug.sethook(hook, mask, count) else debug.sethook() end
  return fine, problem
end

-- Send a job where it should run. Never raises; returns nothing.
local function place(job, part_list)
  local fine, problem = bounded(MOST_INSTRUCTIONS, decide, job, part_list)
  if not fine then
    pcall(function() slurm.log_info("%s", "crossperf: left a job as it is: " .. tostring(problem)) end)
  end
end

return { place = place, executable = executable, named = named, takes = takes, checksum = checksum }
