-- Slurm's job_submit/lua plugin runs this for every job. A site with a job_submit.lua of its own adds the line with
-- dofile and the one with place to it instead. Slurm reads this file again when it changes, and the module with it, so
-- it names the module's version: --@digest@

local loaded, crossperf = pcall(dofile, --@path@)

function slurm_job_submit(job_desc, part_list, submit_uid)
  if loaded then
    crossperf.place(job_desc, part_list)
  else
    slurm.log_info("%s", "crossperf: jobs are left as they are: " .. tostring(crossperf))
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
